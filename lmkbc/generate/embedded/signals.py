"""Signals of the embedded default: each scores a relation's closed set of candidates for some queries.

A signal maps train rows and queries of one relation to scores (m, c + 1); column 0 is "no object". Fitting is part of
the call. A relation has about a hundred rows, so a fit takes milliseconds and is not stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lmkbc.generate.baselines import class_prior, log_posterior
from lmkbc.select.ranking import Floats

PSEUDO = 30.0
TRUST = 0.6
TEMPERATURE = 0.07
NEAREST = 60
RIDGE = 3.0
KERNEL_RIDGE = 1.0
BITS = 14
FLOOR = -24
STATE_RIDGE = 3.0
STATE_TEMPERATURE = 0.1


@dataclass(frozen=True, eq=False)
class Texts:
    """n texts as features.

    words: word presence, (n, words); no columns if texts are not used.
    grams: counts of character n-grams, (n, grams); no columns if texts are not used.
    vectors: unit vectors, (n, d); d is 0 without a sentence encoder.
    states: a language model's states for the question, (n, s); s is 0 without a model, and for texts that are no
    subjects.
    """

    words: sparse.csr_array
    grams: sparse.csr_array
    vectors: Floats
    states: Floats

    def __getitem__(self, rows: npt.NDArray[np.int64]) -> Texts:
        return Texts(self.words[rows], self.grams[rows], self.vectors[rows], self.states[rows])


@dataclass(frozen=True, eq=False)
class Fit:
    """Training data of a signal: n train rows, their right candidates (n, c + 1), and the candidates' texts."""

    train: Texts
    hits: Floats
    candidates: Texts


def prior(fit: Fit, texts: Texts) -> Floats:
    """Return the share of train rows for which a candidate is right, for every query."""
    return np.repeat(class_prior(fit.hits)[None, :], texts.words.shape[0], axis=0)


def naive_bayes(fit: Fit, texts: Texts) -> Floats:
    """Return a distribution over candidates from the subject's words (binary), smoothed by their background."""
    used = np.unique(texts.words.indices)
    words = fit.train.words[:, used]
    background = (np.asarray(words.mean(axis=0)) + 1e-4)[:, None]
    logits = log_posterior(
        class_prior(fit.hits) + 1e-9,
        words.T @ fit.hits,
        fit.hits.sum(axis=0),
        texts.words[:, used],
        pseudo=PSEUDO * background,
        size=PSEUDO,
        trust=TRUST,
    )
    return _softmax(logits)


def kernel_ridge(fit: Fit, texts: Texts) -> Floats:
    """Return ridge regression on TF-IDF of character n-grams, in its dual form."""
    weights = _idf(fit.train.grams)
    known, new = _tfidf(fit.train.grams, weights), _tfidf(texts.grams, weights)
    return _dual_ridge((known @ known.T).toarray(), (new @ known.T).toarray(), fit.hits, KERNEL_RIDGE)


def neighbours(fit: Fit, texts: Texts) -> Floats:
    """Return the votes of the nearest train subjects in the sentence embedding."""
    similar = steady(texts.vectors @ fit.train.vectors.T)
    if similar.shape[1] > NEAREST:
        similar = np.where(similar >= -np.partition(-similar, NEAREST, axis=1)[:, [NEAREST]], similar, -np.inf)
    return _softmax(similar / TEMPERATURE) @ fit.hits


def ridge(fit: Fit, texts: Texts) -> Floats:
    """Return one-vs-rest ridge regression on the centred sentence embedding."""
    centre = fit.train.vectors.mean(axis=0)
    known, new = fit.train.vectors - centre, texts.vectors - centre
    return _dual_ridge(known @ known.T, new @ known.T, fit.hits, RIDGE)


def mapping(fit: Fit, texts: Texts) -> Floats:
    """Return the cosine of each candidate with the image of the subject under a linear map from subjects to objects."""
    centre, objects = fit.train.vectors.mean(axis=0), fit.candidates.vectors
    known, new = fit.train.vectors - centre, texts.vectors - centre
    means = fit.hits[:, 1:] @ objects / np.maximum(fit.hits[:, 1:].sum(axis=1, keepdims=True), 1)
    pointed = _dual_ridge(known @ known.T, new @ known.T, means, 1.0)
    pointed /= np.linalg.norm(pointed, axis=1, keepdims=True) + 1e-9
    return _without_empty(pointed @ objects.T)


def state_ridge(fit: Fit, texts: Texts) -> Floats:
    """Return one-vs-rest ridge regression on the language model's states: a linear probe."""
    known, new = _scaled(fit.train.states, texts.states)
    return _dual_ridge(known @ known.T, new @ known.T, fit.hits, STATE_RIDGE)


def state_neighbours(fit: Fit, texts: Texts) -> Floats:
    """Return the votes of the train subjects, weighted by the cosine of their states."""
    known, new = (_unit(part) for part in _scaled(fit.train.states, texts.states))
    return _softmax(new @ known.T / STATE_TEMPERATURE) @ fit.hits


def _scaled(known: Floats, new: Floats) -> tuple[Floats, Floats]:
    """Return both arrays without the mean of the first, scaled so that its rows have length 1 on average."""
    centre = known.mean(axis=0)
    size = np.sqrt(np.square(known - centre).sum(axis=1).mean()) + 1e-9
    return (known - centre) / size, (new - centre) / size


def _unit(rows: Floats) -> Floats:
    return cast(Floats, rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9))


def vector_similarity(fit: Fit, texts: Texts) -> Floats:
    """Return the cosine of subject and candidate in the sentence embedding."""
    return _without_empty(texts.vectors @ fit.candidates.vectors.T)


def string_similarity(fit: Fit, texts: Texts) -> Floats:
    """Return the cosine of subject and candidate over character n-grams."""
    weights = _idf(fit.candidates.grams)
    return _without_empty((_tfidf(texts.grams, weights) @ _tfidf(fit.candidates.grams, weights).T).toarray())


def scores(fit: Fit, texts: Texts) -> dict[str, Floats]:
    """Return all signals that the features allow, by name."""
    signals = [
        prior,
        *((naive_bayes, kernel_ridge, string_similarity) if texts.words.shape[1] else ()),
        *((neighbours, ridge, mapping, vector_similarity) if texts.vectors.shape[1] else ()),
        *((state_ridge, state_neighbours) if texts.states.shape[1] else ()),
    ]
    return {signal.__name__: signal(fit, texts) for signal in signals}


def steady(values: Floats, bits: int = BITS, floor: int = FLOOR) -> Floats:
    """Round values so that they do not depend on the processor, since libraries add in different orders.

    bits: bits of the mantissa to keep.
    floor: steps are at least 2 ** floor, so that differences near 0 keep fewer bits.
    """
    step = np.ldexp(1.0, np.maximum(np.frexp(values)[1] - bits, floor))
    return cast(Floats, np.rint(values / step) * step + 0.0)  # no -0.0


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return cast(Floats, powers / powers.sum(axis=1, keepdims=True))


def _dual_ridge(known: Floats, new: Floats, targets: Floats, penalty: float) -> Floats:
    mean = targets.mean(axis=0)
    duals: Floats = np.linalg.solve(known + penalty * np.eye(len(known)), targets - mean)
    return cast(Floats, new @ duals + mean)


def _idf(counts: sparse.csr_array) -> Floats:
    found = np.bincount(counts.indices, minlength=counts.shape[1])  # most of the 2^18 columns are in no row
    return cast(Floats, (1 + np.log((1 + counts.shape[0]) / (1 + np.arange(1 + found.max()))))[found])


def _tfidf(counts: sparse.csr_array, weights: Floats) -> sparse.csr_array:
    weighted = sparse.csr_array(
        (np.log1p(counts.data) * weights[counts.indices], counts.indices, counts.indptr), counts.shape
    )
    norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel()) + 1e-9
    weighted.data = weighted.data / np.repeat(norms, np.diff(weighted.indptr))
    return weighted


def _without_empty(scores: Floats) -> Floats:
    return np.concatenate([np.zeros((len(scores), 1)), scores], axis=1)

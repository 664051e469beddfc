"""Coordinates in the forms and the words of several languages."""

from dataclasses import replace

import pytest
from small import small_relation

from lmkbc import registry
from lmkbc.answer.parse import parse

PLACE = small_relation(kind="coordinates", shape=registry.KINDS.get("coordinates").shape)


@pytest.mark.parametrize(
    ("language", "text", "place"),
    [
        ("", "45,5° N, 73,6° W", "45.5, -73.6"),
        ("", "45,5° nördlicher Breite, 73,6° westlicher Länge", "45.5, -73.6"),
        ("de", "48° 8′ N, 11° 34′ O", "48.133, 11.567"),
        ("de", "48,1371° N / 11,5754° O", "48.1371, 11.5754"),
        ("fr", "48° 8′ N, 11° 34′ O", "48.133, -11.567"),
        ("es", "40,4168° N, 3,7038° O", "40.4168, -3.7038"),
        ("", "48° 8′ N, 11° 34′ O", ""),  # Ost, or ouest
        ("", "48° 8′, 11° 34′", ""),
        ("", "48° 51' de latitude nord et 2° 21' de longitude est", "48.85, 2.35"),
        ("", "40,4° de latitud norte y 3,7° de longitud oeste", "40.4, -3.7"),
        ("", "41,9° di latitudine nord e 12,5° di longitudine est", "41.9, 12.5"),
        ("", "52,2° szerokości geograficznej północnej i 21,0° długości geograficznej wschodniej", "52.2, 21"),
        ("", "45° 30′ с. ш. 73° 34′ з. д.", "45.5, -73.567"),
        ("", "55,7° северной широты и 37,6° восточной долготы", "55.7, 37.6"),
        ("", "39,9° kuzey, 32,8° doğu", "39.9, 32.8"),
        ("", "30.04° شمالا 31.24° شرقا", "30.04, 31.24"),
        ("", "北纬39.9度，东经116.4度", "39.9, 116.4"),
        ("", "北緯35度41分、東経139度41分", "35.683, 139.683"),
        ("", "Breite: 48.8566, Länge: 2.3522", "48.8566, 2.3522"),
        ("", "Широта: 55.75, долгота: 37.62", "55.75, 37.62"),
    ],
)
def test_a_place_is_read_in_the_words_of_many_languages(language: str, text: str, place: str) -> None:
    assert ", ".join(parse(text, replace(PLACE, language=language), "X").objects) == place

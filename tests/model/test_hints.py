"""What a message suggests to those who write as in another language."""

from __future__ import annotations

import pytest

from vestnik import Filter, FilterSyntaxError

QUOTES = """quotes: "..." around an odd name, '...' around a string or a type"""
RESERVED = ' (put "..." around reserved names)'


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("symbol = ACME", 10, "a value (strings go in single quotes)"),
        ('symbol = "ACME"', 10, "a value (strings go in single quotes)"),
        ("price == 10", 8, "a value (equality is a single =)"),
        ("price <> 10", 8, "a value (not equal is written !=)"),
        ("a = 1 && b = 2", 7, "AND"),
        ("a = 1 || b = 2", 7, "OR"),
        ("!a = 1", 1, "NOT or !="),
        ("tags[0] = 1", 5, "a path of names (ANY and ALL look into lists)"),
        ("a = ‘x’", 5, "straight quotes"),
        ("a = 1; b = 2", 6, "a name, a value or an operator"),
        ("my-attr > 1", 1, QUOTES),
        ("a = 1 AND b.covid-19 > 1", 13, QUOTES),
        ("symbol = BRK-B", 10, QUOTES),
        ("type IS com.example.my-event", 21, QUOTES),
        ("type IS com.example-2", 13, QUOTES),
        ("a - b > 1", 3, "a number as in JSON"),
        ("a = 1-2", 6, "AND, OR or the end of the filter"),
        ("a BETWEEN 'x' AND-1", 18, "a string, as the lower end is"),
        ("list = 1", 1, f"a path, NOT, EXISTS, ANY, ALL, TRUE, FALSE or ({RESERVED}"),
        ("EXISTS Map", 8, f"a path{RESERVED}"),
        ("ANY in = 1", 5, f"a path{RESERVED}"),
        ("type IS market.list", 16, 'a name (put "..." around odd or reserved ones)'),
    ],
)
def test_the_message_says_how_it_is_written_here(text: str, column: int, expected: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        Filter.parse(text)
    assert (caught.value.column, caught.value.expected) == (column, expected)

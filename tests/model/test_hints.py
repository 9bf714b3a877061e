"""What a message suggests to those who write as in another language."""

from __future__ import annotations

import pytest

from vestnik import Filter, FilterSyntaxError


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
    ],
)
def test_the_message_says_how_it_is_written_here(text: str, column: int, expected: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        Filter.parse(text)
    assert (caught.value.column, caught.value.expected) == (column, expected)

"""What a message suggests to those who write as in another language."""

from __future__ import annotations

import pytest

from vestnik import Filter, FilterSyntaxError

QUOTES = """quotes: "..." around an odd name, '...' around a string or a type"""
UNIT = "a path, NOT, EXISTS, ANY, ALL, TRUE, FALSE or ("
NO_VALUE = "a value (strings go in single quotes; two paths cannot be compared)"
COMPARISONS = "a comparison (= != < <= > >= BETWEEN IN LIKE GLOB MATCHES IS; EXISTS goes before a path)"
RESERVED = ' (put "..." around reserved names)'


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("symbol = ACME", 10, NO_VALUE),
        ('symbol = "ACME"', 10, NO_VALUE),
        ("price > volume", 9, NO_VALUE),
        ("price => 5", 8, "a value (at least is written >=)"),
        ("price =< 5", 8, "a value (at most is written <=)"),
        ("price > < 5", 9, "a value"),
        ("halted", 7, "a comparison (of a boolean: = TRUE)"),
        ("(NOT halted) AND a = 1", 12, "a comparison (of a boolean: = TRUE)"),
        ("items (a = 1)", 1, "a known constraint kind (OVERLAPS), or ANY or ALL before a list"),
        ("order.items (a = 1)", 13, "a comparison (ANY or ALL goes before the path of a list)"),
        ("EXIST price", 7, COMPARISONS),
        ("name ILIKE 'a%'", 6, COMPARISONS),
        ("name startswith 'a'", 6, COMPARISONS),
        ("5 < price", 1, f"{UNIT} (the path comes first, then the value)"),
        ("'x' = price", 1, f"{UNIT} (the path comes first, then the value)"),
        ("price > 5 -- cheap", 11, "a filter without comments"),
        ("price > 5 # cheap", 11, "a filter without comments"),
        ("price--", 6, "a filter without comments"),
        ("price + 1 > 5", 7, "a comparison (there is no arithmetic)"),
        ("price > 5 * 2", 11, "a comparison (there is no arithmetic)"),
        ("type IS market.*", 16, "a name (type IS includes the types below the one it names)"),
        ("legs.*.qty > 1", 6, "a name (ANY and ALL look into lists)"),
        ("name ~ 'a.*'", 6, "MATCHES"),
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
        ("a - b > 1", 3, "a comparison (there is no arithmetic)"),
        ("a = 1-2", 6, "AND, OR or the end of the filter"),
        ("a BETWEEN 'x' AND-1", 18, "a string, as the lower end is"),
        ("list = 1", 1, f"{UNIT}{RESERVED}"),
        ("EXISTS Map", 8, f"a path{RESERVED}"),
        ("ANY in = 1", 5, f"a path{RESERVED}"),
        ("type IS market.list", 16, 'a name (put "..." around odd or reserved ones)'),
    ],
)
def test_the_message_says_how_it_is_written_here(text: str, column: int, expected: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        Filter.parse(text)
    assert (caught.value.column, caught.value.expected) == (column, expected)

"""Times as people write them, as intervals."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hades.text.dates import closeness, time_asked, times_in, years_of

TOLD_AT = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)  # a Monday


def day(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Who owned it from 1811 to 1827?", "1811-01-01", "1828-01-01"),
        ("between March 1990 and 1992", "1990-03-01", "1993-01-01"),
        ("between the years 1975 and 1982", "1975-01-01", "1983-01-01"),
        ("in 2004", "2004-01-01", "2005-01-01"),
        ("before 1950", None, "1950-01-01"),
        ("until April 2006", None, "2006-05-01"),
        ("after 1950", "1951-01-01", None),
        ("since 2001", "2001-01-01", None),
        ("2001 – present", "2001-01-01", None),
        ("from 1990 onwards", "1990-01-01", None),
        ("in the early 1980s", "1980-01-01", "1984-01-01"),
        ("the mid-1990s", "1993-01-01", "1997-01-01"),
        ("in the 1930s", "1930-01-01", "1940-01-01"),
        ("in the 19th century", "1801-01-01", "1901-01-01"),
        ("in late 2003", "2003-08-01", "2004-01-01"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("in dec 1981", "1981-12-01", "1982-01-01"),
        ("1:56 pm on 8 May, 2023", "2023-05-08", "2023-05-09"),
        ("May 8 , 2023", "2023-05-08", "2023-05-09"),
        ("the 8th of May 2023", "2023-05-08", "2023-05-09"),
        ("2023-05-08", "2023-05-08", "2023-05-09"),
        ("during 1916-1920 , while", "1916-01-01", "1921-01-01"),
        ("the 2007–08 season", "2007-01-01", "2009-01-01"),
        ("from Apr 1935 to Apr 1937", "1935-04-01", "1937-05-01"),
        ("from March to May 1990", "1990-03-01", "1990-06-01"),
        ("from November to May 1990", "1989-11-01", "1990-06-01"),
        ("the summer of 1969", "1969-06-01", "1969-09-01"),
        ("winter 1999", "1999-12-01", "2000-03-01"),
    ],
)
def test_a_time_in_words_is_the_whole_of_it(text: str, start: str | None, end: str | None):
    assert [told.interval for told in times_in(text)] == [(day(start), day(end))]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("yesterday", "2023-05-07", "2023-05-08"),
        ("last night", "2023-05-07", "2023-05-08"),
        ("last week", "2023-05-01", "2023-05-08"),
        ("last weekend", "2023-05-06", "2023-05-08"),
        ("next month", "2023-06-01", "2023-07-01"),
        ("last year", "2022-01-01", "2023-01-01"),
        ("last Friday", "2023-05-05", "2023-05-06"),
        ("next Monday", "2023-05-15", "2023-05-16"),
        ("last July", "2022-07-01", "2022-08-01"),
        ("next March", "2024-03-01", "2024-04-01"),
        ("two days ago", "2023-05-06", "2023-05-07"),
        ("3 years ago", "2020-01-01", "2021-01-01"),
        ("a couple of months ago", "2023-03-01", "2023-04-01"),
        ("a week ago", "2023-04-28", "2023-05-05"),
    ],
)
def test_what_is_told_relative_to_the_telling_needs_its_moment(text: str, start: str, end: str):
    assert [told.interval for told in times_in(text, TOLD_AT)] == [(day(start), day(end))]
    assert times_in(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "31 June 1990",
        "1500 people",
        "$1990",
        "it may march on",
        "3,1990",
        "12 1234567",
        "3017 N Street",
        "",
    ],
)
def test_what_is_no_time_is_not_read_as_one(text: str):
    assert times_in(text) == []


def test_a_text_gives_its_times_in_order_with_their_places():
    text = "Born on 2 March 1911, she sang from Apr 1939 to Jul 1941 and taught after 1950."
    told = times_in(text)
    assert [text[one.at : one.to] for one in told] == [
        "2 March 1911",
        "Apr 1939 to Jul 1941",
        "1950",
    ]
    assert [one.is_scope for one in told] == [False, True, True]


def test_a_question_is_about_its_stretch_of_time_and_not_about_a_date_in_passing():
    asked = time_asked(
        "In 1994 the club moved. Where did it play from 1995 to 2015, said a book of 2017?"
    )
    assert asked == (day("1995-01-01"), day("2016-01-01"))
    assert time_asked("Born in 1911, what did she do in 1930?") == (
        day("1930-01-01"),
        day("1931-01-01"),
    )
    assert time_asked("Who sang?") is None


def test_years_of_an_interval():
    assert years_of((day("1916-01-01"), day("1919-01-01"))) == [1916, 1917, 1918]
    assert years_of((day("1001-01-01"), day("1901-01-01"))) == [1001, 1900]
    assert years_of((None, day("1950-01-01"))) == [1949]
    assert years_of((None, None)) == []


def test_the_closest_of_the_stated_times_counts():
    asked = (day("1990-01-01"), day("1992-01-01"))
    assert [closeness(asked, one.interval) for one in times_in("1980, then 1990 to 1991")] == [
        0.0,
        1.0,
    ]
    assert closeness(asked, times_in("from 1990 to 1993")[0].interval) == pytest.approx(
        0.5, abs=0.01
    )
    assert closeness(asked, (day("1991-01-01"), None)) == pytest.approx(0.5, abs=0.01)

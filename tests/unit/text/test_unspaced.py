"""Words of scripts without spaces, against sentences that were cut by hand."""

import pytest

from raison.text import unspaced
from raison.text.segment import word_spans
from raison.text.unspaced import within_words

BY_HAND = {
    "ja": [
        "この|映画|は|静か|で|とても|美しい|。",
        "物語|は|退屈|だ|が|、|音楽|は|素晴らしい|。",
        "東京|で|会議|が|行わ|れ|た|。",
    ],
    "zh": [
        "这部|电影|非常|好看|。",
        "故事|很|无聊|，|但是|音乐|很|美|。",
        "他|在|北京|大学|学习|。",
        "故事|很|無聊|，|但是|音樂|很|美|。",
    ],
    "th": [
        "หนัง|เรื่อง|นี้|สนุก|มาก",
        "เรื่องราว|น่าเบื่อ|แต่|เพลง|ไพเราะ",
        "เขา|เรียน|ที่|มหาวิทยาลัย|กรุงเทพ",
    ],
}


def borders(words: list[str]) -> set[int]:
    return {len("".join(words[:count])) for count in range(1, len(words))}


@pytest.mark.parametrize(("language", "least"), [("ja", 0.95), ("zh", 0.85), ("th", 0.8)])
def test_borders_are_near_those_by_hand(language: str, least: float) -> None:
    """F1 of the borders. The default rules alone reach 0.73, 0.76 and 0.34 on these sentences."""
    right = found = wanted = 0
    for sentence in BY_HAND[language]:
        words = sentence.split("|")
        text = "".join(words)
        own = borders([text[start:end] for start, end in word_spans(text)])
        right, found, wanted = right + len(own & borders(words)), found + len(own), wanted + len(borders(words))
    assert 2 * right / (found + wanted) >= least


def test_other_scripts_are_left_alone() -> None:
    for text in ("It is good.", "كان الفيلم رائعًا", "फिल्म बहुत अच्छी थी", "영화가 좋다", "הסרט היה נהדר", "2024", ""):
        assert within_words(text) == set()


def test_punctuation_and_other_scripts_end_a_word() -> None:
    text = "海は、ABC本3冊。"
    assert [text[start:end] for start, end in word_spans(text)] == ["海", "は", "、", "ABC", "本", "3", "冊", "。"]


LONG = {
    "ja": "この映画はとても美しい物語" * 120,
    "ja, one letter": "海" * 1500 + "の",
    "zh": "这部电影非常好看故事很无聊" * 120,
    "zh, one letter": "海" * 1500,
    "th": "หนังเรื่องนี้สนุกมาก" * 80,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_windows_give_what_the_whole_run_gives(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(text) > 2 * unspaced.WINDOW
    found = within_words(text)
    monkeypatch.setattr(unspaced, "WINDOW", len(text))
    assert found == within_words(text)

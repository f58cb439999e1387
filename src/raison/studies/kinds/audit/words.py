"""What an audit's lights and questions are called, and how the lights are set."""

from raison.studies.kinds.audit.results import HALF, HARD, STEADY, Audit, Evidence, Light, Question

LIGHTS: dict[Light, str] = {"green": "trust", "amber": "with care", "red": "do not trust", "grey": "not tested"}
"""The lights in words, for those who see no colours, and on paper."""

ANSWERS: dict[Question, dict[Light, str]] = {
    "faithful": {"green": "faithful", "amber": "partly", "red": "no better than random", "grey": "not tested"},
    "parameters": {"green": "depends on them", "amber": "undecided", "red": "insensitive", "grey": "not tested"},
    "changes": {"green": "steady", "amber": "moves", "red": "unstable", "grey": "not tested"},
    "attacks": {"green": "withstands", "amber": "bends", "red": "breaks", "grey": "not tested"},
}

QUESTIONS: dict[Question, str] = {
    "faithful": "Does it find what the model uses?",
    "parameters": "Does it depend on the model's parameters?",
    "changes": "Does it stay the same under harmless changes?",
    "attacks": "Does it withstand attacks?",
}

SHORT: dict[Question, str] = {
    "faithful": "faithful?",
    "parameters": "depends on the model?",
    "changes": "steady?",
    "attacks": "withstands attacks?",
}

RULES: dict[Question, str] = {
    "faithful": (
        "The units with the highest scores are removed (comprehensiveness), or kept alone (sufficiency). Green: better "
        "than random scores on both, which means that the 95 % interval of the difference lies above 0. Amber: on one. "
        "Red: on neither, or worse than random on either."
    ),
    "parameters": (
        "The model's blocks are filled with random values, from the last one back, and every text is explained again. "
        "An explanation that stays the same does not explain this model. The number is the area under the curve of the "
        f"rank correlation with the original. Green: its interval lies below {HALF}. Red: from {HALF} on. Amber: it "
        "does not tell."
    ),
    "changes": (
        "Letters are capitalised, contractions resolved, words replaced by synonyms, a sentence that says nothing is "
        "added; only changes that leave the probability where it is count. The number is the rank correlation with the "
        f"original. Green: its interval lies above {STEADY}. Red: below {HALF}. Amber: between."
    ),
    "attacks": (
        "An adversary looks for a small change that keeps the prediction and pushes the top units down: of the word "
        "embeddings where the method's gradient can be followed, and by exchanging words for similar ones. The number "
        f"is the share of the top ranks that other units hold afterwards. Green: its interval lies below {HARD:.0%}. "
        f"Red: from {HALF:.0%} on. Amber: between. Where only words could be exchanged the test is the easier one."
    ),
}

OVERALL = (
    "Overall: red where one of the first two is red: not faithful, or not dependent on the model. Amber where one of "
    "these is undecided or could not be tested, or the explanation is unstable under harmless changes or breaks under "
    "attack. Green else."
)


def answer(evidence: Evidence) -> str:
    """The light of one question in a word or two."""
    return ANSWERS[evidence.question][evidence.light]


def title(audit: Audit) -> str:
    """What the audit is called."""
    header = audit.header
    return f"Audit of {header['model']} on {header['data']}"

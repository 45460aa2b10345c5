"""The digest of ddpbench/1 documents, for scripts that check or write them: 64-bit FNV-1a of the canonical
form of RFC 8785. It is independent of the C code on purpose."""
import json


def fnv1a64(data):
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return state


def number(value):
    """A number in the form of ECMAScript. repr() gives the same digits."""
    value = float(value)
    if value == 0:
        return "0"
    sign, (mantissa, _, exponent) = "-" * (value < 0), repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if not -5 <= point <= 21:
        return f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1:+d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return sign + digits.ljust(point, "0")
    return f"{sign}{digits[:point]}.{digits[point:]}"


def canonical(item):
    """The canonical form of RFC 8785. json.dumps() escapes the same characters in the same way."""
    if isinstance(item, dict):
        keys = sorted(item, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(key)}:{canonical(item[key])}" for key in keys) + "}"
    if isinstance(item, list):
        return "[" + ",".join(map(canonical, item)) + "]"
    if isinstance(item, (int, float)) and not isinstance(item, bool):
        return number(item)
    return json.dumps(item, ensure_ascii=False)


def canonical_digest(document):
    """The digest of the canonical form without the digest."""
    rest = {key: value for key, value in document.items() if key != "digest"}
    return f"jcs-fnv1a64:{fnv1a64(canonical(rest).encode()):016x}"

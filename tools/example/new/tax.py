"""Taxes of an invoice's lines."""
from money import cents


def tax(net, rate):
    return cents(net * rate)

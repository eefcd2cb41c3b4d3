"""Taxes of an invoice's lines."""


def tax(net, rate):
    return round(net * rate, 2)

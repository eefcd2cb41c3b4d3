"""Amounts in whole cents, rounded once, half to even."""


def cents(amount):
    return round(amount * 100)

"""What things cost: ratios within one run, printed by ``make bench``; a bound that is missed fails it."""

package forward

import "math"

// findHighestRate finds the highest sustained rate between low and high, by bisection on a logarithmic
// scale. If all rates up to a limit are sustained and none above it, the result is exact to a factor
// of precision. It is 0 if not even low is sustained.
func findHighestRate(low, high, precision float64, sustained func(rate float64) (bool, error)) (float64, error) {
	best := 0.0
	if ok, err := sustained(high); ok || err != nil {
		return high, err
	}
	for high/low > precision {
		rate := math.Sqrt(low * high)
		ok, err := sustained(rate)
		if err != nil {
			return best, err
		}
		if ok {
			low, best = rate, rate
		} else {
			high = rate
		}
	}
	if best == 0 {
		ok, err := sustained(low)
		if !ok {
			low = 0
		}
		return low, err
	}
	return best, nil
}

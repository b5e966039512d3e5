package forward

import "math"

// findHighestRate finds the highest rate between low and high that is sustained. It halves the range in
// proportion. If there is a rate up to which every rate is sustained, and above which none is, the
// result is exact to a factor of precision. It is 0 if not even low is sustained.
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

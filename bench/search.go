package bench

import "math"

// highestRate finds the highest rate that a switch sustains, by halving the
// range between low and high in proportion: sustained says whether it does at
// one rate. It is right to within a factor of precision when there is one rate
// up to which all is sustained and above which nothing is; 0 when not even low
// is.
func highestRate(low, high, precision float64, sustained func(rate float64) (bool, error)) (float64, error) {
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

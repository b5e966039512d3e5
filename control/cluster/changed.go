package cluster

// AppendChanged appends the keys of objects that differ between two maps: those that are new,
// gone, or another object now.
func AppendChanged[T any](keys []Key, was, now map[Key]*T) []Key {
	for k, v := range now {
		if was[k] != v {
			keys = append(keys, k)
		}
	}
	for k := range was {
		if now[k] == nil {
			keys = append(keys, k)
		}
	}
	return keys
}

package cluster

// AppendChanged appends the keys of the objects that differ between two maps: new, gone or
// replaced by another object.
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

//go:build !linux

package ports

import "errors"

// Awake exists only on Linux.
type Awake struct{}

// OpenAwake fails, because only Linux has these requests.
func OpenAwake() (*Awake, error) { return nil, errors.New("processors are kept awake on Linux only") }

// Keep is never called.
func (a *Awake) Keep(bool) error { return nil }

// Close is never called.
func (a *Awake) Close() error { return nil }

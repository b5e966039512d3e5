//go:build !linux

package ports

import "errors"

// Awake is for Linux.
type Awake struct{}

// OpenAwake fails: there is no such request.
func OpenAwake() (*Awake, error) { return nil, errors.New("processors are kept awake on Linux only") }

// Keep is never called.
func (a *Awake) Keep(bool) error { return nil }

// Close is never called.
func (a *Awake) Close() error { return nil }

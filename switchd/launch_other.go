//go:build !linux || !(amd64 || arm64)

package switchd

import (
	"context"
	"errors"
)

// GivenFlag is the flag by which a launcher starts the switch.
const GivenFlag = "given"

var errNotConfined = errors.New("a confined switch takes Linux on amd64 or arm64")

// Enter does nothing: no launcher has started this process.
func Enter() error { return nil }

// RunConfined is an error on this machine.
func (p *Process) RunConfined(context.Context, int, string, ...string) error { return errNotConfined }

// RunGiven is an error on this machine.
func (p *Process) RunGiven(context.Context, string) error { return errNotConfined }

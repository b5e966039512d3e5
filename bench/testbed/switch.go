package testbed

import (
	"errors"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports"
)

// SwitchOptions are the settings in which the rig's switches differ.
type SwitchOptions struct {
	// Connections is how many connections there is room for; conntrack.DefaultMax if it is 0.
	Connections int
	// Cache, TimeEvery and KeepAwake are those of dataplane.Config.
	Cache     int
	TimeEvery int
	KeepAwake bool
}

// NewSwitch makes a switch of antrail with a program and two ports. The ports have the numbers of
// Sender and Receiver. If the switch is closed, the ports are closed. No worker runs yet.
func NewSwitch(o SwitchOptions, p *flow.Program, in, out ports.Port) (*dataplane.Switch, *conntrack.Table, error) {
	start := time.Now()
	clock := func() int64 { return int64(time.Hour + time.Since(start)) }
	ct := conntrack.NewTable(conntrack.Config{Now: clock, NewRate: -1, Max: o.Connections})
	sw, err := dataplane.New(dataplane.Config{Conntrack: ct, Clock: clock, Cache: o.Cache, TimeEvery: o.TimeEvery, KeepAwake: o.KeepAwake})
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(sw.Apply(flow.BundleOf(p)), sw.AddPort(Sender().OFPort, in), sw.AddPort(Receiver().OFPort, out))
	if err != nil {
		return nil, nil, errors.Join(err, sw.Close())
	}
	return sw, ct, nil
}

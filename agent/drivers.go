package agent

import (
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/switchd"
)

// The drivers of a pod's port, as Port.Driver names them (switchd).
const (
	DriverAuto     = switchd.DriverAuto
	DriverAFXDP    = switchd.DriverAFXDP
	DriverAFPacket = switchd.DriverAFPacket
	// DriverTap makes the link, a tap: TrafficControls and application-layer policies
	// send traffic to such ports.
	DriverTap = switchd.DriverTap
)

// KnownDriver says whether a pod's port can have this driver.
func KnownDriver(name string) bool {
	return name == DriverAuto || name == DriverAFXDP || name == DriverAFPacket
}

// sweepTaps deletes devices of an agent before that was killed, and that this one has
// not opened: it has another configuration, or ports have gone meanwhile.
func (a *Agent) sweepTaps() {
	opened := map[string]bool{a.config.Gateway.Name: true}
	for _, p := range a.pods.wanted() {
		opened[p.Link] = true
	}
	deleted, err := tap.Sweep(a.config.owner(), func(name string) bool { return opened[name] })
	if len(deleted) > 0 {
		a.log.Info("links of an agent before that was killed are deleted", "links", deleted)
	}
	if err != nil {
		a.log.Warn("links of an agent before stay", "error", err)
	}
}

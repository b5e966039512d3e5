package agent

import (
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/ports"
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

// opener opens ports as the configuration says.
func (a *Agent) opener() *switchd.Opener {
	o := &switchd.Opener{Offload: a.kernel, Owner: host.LinkAlias(a.config.Socket), Log: a.log, Cards: a.config.AFXDP.Cards()}
	if a.estate != nil {
		o.From = &a.estate.Inheritance
	}
	return o
}

// openPod opens a pod's port on its link of the Node. A tap carries packet marks, unless
// nothing comes back from it.
func (a *Agent) openPod(p Port) (ports.Port, error) {
	if p.Driver != DriverTap {
		return a.open.Link(p.Link, p.Driver)
	}
	t, err := a.open.Tap(tap.Options{Name: p.Link, MTU: a.config.Gateway.MTU, Marks: !p.oneWay, Aside: true})
	if err != nil {
		return nil, err // t would be no nil Port
	}
	return t, nil
}

// keepTaps says whether the devices that the switch has made stay when their ports are
// closed: they do when they are another agent's.
func (a *Agent) keepTaps(keep bool) {
	if a.gateway != nil {
		a.gateway.Keep(keep)
	}
	if a.pipeline == nil || a.pods == nil {
		return
	}
	for _, p := range a.pods.heritable() {
		if t, is := p.(*tap.Port); is {
			t.Keep(keep)
		}
	}
}

// sweepTaps deletes devices of an agent before that was killed, and that this one has
// not opened: it has another configuration, or ports have gone meanwhile.
func (a *Agent) sweepTaps() {
	opened := map[string]bool{a.config.Gateway.Name: true}
	for _, p := range a.pods.wanted() {
		opened[p.Link] = true
	}
	deleted, err := tap.Sweep(host.LinkAlias(a.config.Socket), func(name string) bool { return opened[name] })
	if len(deleted) > 0 {
		a.log.Info("links of an agent before that was killed are deleted", "links", deleted)
	}
	if err != nil {
		a.log.Warn("links of an agent before stay", "error", err)
	}
}

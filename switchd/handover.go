package switchd

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/offload"
)

// A switch process that hands over to another (takeover.go). Their messages, by door.Talk after
// POST /v1/take-over:
//
//	next                                  this one
//	hello, with what it understands    →  refuses changes from here on
//	                                   ←  offload, if it is confined; ports, with descriptors; each of them;
//	                                      what it holds for controllers, as ports of a driver that no port has
//	                                   ←  connections, with their file; entries as they are kept
//	builds its switch and ports
//	ready, with ports that it opens
//	itself                             →  closes those, and stops moving packets
//	                                   ←  stopped, with what packets learned last
//	finds the connections, and moves
//	packets
//	running                            →  ends, and takes nothing back
//
// Until the next one is ready, nothing has changed, and this one continues if anything fails. If
// the next one fails later, this one ends as if it had been killed. Its supervisor starts it
// again, with the entries, ports and connections of its directory.

// handOverProtocol is the upgrade's protocol. Its number changes with the messages.
const handOverProtocol = "antrail-switch-hand-over/2"

// note is one message.
type note struct {
	Say string
	// Why is the reason of a refusal.
	Why string `json:",omitempty"`
	// Layout, Connections and Confined belong to hello. Layout is the layout of AF_XDP ports that
	// the next one knows (afxdp.Layout). Connections is the size of its table. Confined is set if
	// it has no privilege. With offload, Layout is that of the maps (offload entry.Layout).
	Layout      int  `json:",omitempty"`
	Connections int  `json:",omitempty"`
	Confined    bool `json:",omitempty"`
	// Driver and Link describe a port, with port.
	Driver string `json:",omitempty"`
	Link   string `json:",omitempty"`
	// Kept is the file of entries and ports, with connections.
	Kept string `json:",omitempty"`
	// Declined are links whose ports the next one opens itself, with ready.
	Declined []string `json:",omitempty"`
	// Still is the time when packets stopped, by the switch's clock, and Learned are the learned
	// entries, with stopped.
	Still   int64               `json:",omitempty"`
	Learned []telemetry.Learned `json:",omitempty"`
}

// The kinds of messages.
const (
	sayNo          = "no"
	sayHello       = "hello"
	sayOffload     = "offload"
	sayPort        = "port"
	sayConnections = "connections"
	sayReady       = "ready"
	sayStopped     = "stopped"
	sayRunning     = "running"
)

// driverHeld is the driver of values that a switch holds for controllers (door.Server.Held). Why
// has the value. A switch that does not know it closes the descriptors.
const driverHeld = "held"

// How long one process waits for the other: for a message, until it has built its switch, and
// until it moves packets.
const (
	wordTime    = 10 * time.Second
	prepareTime = time.Minute
	beginTime   = 10 * time.Second
)

// errHandedOver is the end of a switch after another has taken over.
var errHandedOver = errors.New("another switch has taken over")

// hear waits for one of some messages. The descriptors belong to the caller. A refusal is an
// error.
func hear(t door.Talk, waitAtMost time.Duration, what ...string) (n note, fds []int, err error) {
	if err := t.SetReadDeadline(time.Now().Add(waitAtMost)); err != nil {
		return n, nil, err
	}
	fds, err = t.Hear(&n)
	switch {
	case err != nil:
	case n.Say == sayNo:
		err = errors.New(n.Why)
	case !slices.Contains(what, n.Say):
		err = fmt.Errorf("the other switch says %.20q, and is expected to say %s", n.Say, strings.Join(what, " or "))
	}
	if err != nil {
		door.CloseDescriptors(fds)
		fds = nil
	}
	return n, fds, err
}

// successor is a switch that is ready to take over.
type successor struct {
	door.Talk
	given []ports.Heritable
}

// answerTakeOver hands over to the caller until that is ready. serve does the rest.
func (p *Process) answerTakeOver(w http.ResponseWriter, r *http.Request) {
	if got := r.Header.Get("Upgrade"); got != handOverProtocol {
		http.Error(w, fmt.Sprintf("this switch speaks %s, not %.40q: stop it and start the other", handOverProtocol, got), http.StatusUpgradeRequired)
		return
	}
	t, err := door.Hijack(w, handOverProtocol)
	if err != nil {
		return
	}
	given, err := p.handOver(t)
	if err == nil {
		select {
		case p.successors <- &successor{t, given}:
			return
		default:
			err = errors.New("this switch hands over already, or ends")
		}
	}
	p.server.Freeze(false)
	p.Log.Warn("another switch was to take over, and has not; this one goes on", "error", err)
	t.Say(note{Say: sayNo, Why: err.Error()}) // it may have hung up
	t.Close()
}

// handOver gives everything that is open, and waits until the next switch is ready. It returns
// the ports that the next one continues with.
func (p *Process) handOver(t door.Talk) (given []ports.Heritable, err error) {
	hello, _, err := hear(t, wordTime, sayHello)
	if err != nil {
		return nil, err
	}
	if have := p.sw.Table().Max(); hello.Connections != have {
		return nil, fmt.Errorf("conntrack.max is %d there and %d here: stop this switch and start the other", hello.Connections, have)
	}
	if hello.Confined != p.Confined {
		return nil, errors.New("one of the two switches is confined, and the other is not: stop this one and start the other")
	}
	p.server.Freeze(true)
	p.Log.Info("another switch is about to take over; nothing changes until it has")
	text, err := keptText(p.sw, p.ports)
	if err != nil {
		return nil, err
	}
	if all := p.ports.open.Offload.Descriptors(); p.Confined && all != nil {
		if err := t.Say(note{Say: sayOffload, Layout: offload.Layout}, all...); err != nil {
			return nil, err
		}
	}
	for _, h := range p.ports.heritable() {
		driver := h.Info().Driver
		if (driver == door.DriverAFXDP || driver == door.DriverUplink) && hello.Layout != afxdp.Layout {
			p.Log.Warn("port is not handed over: the other switch knows another layout of it", "port", h.Name(), "theirs", hello.Layout, "ours", afxdp.Layout)
			continue
		}
		if err := t.Say(note{Say: sayPort, Driver: driver, Link: h.Name()}, h.Descriptors()...); err != nil {
			return nil, fmt.Errorf("port %s: %w", h.Name(), err)
		}
		given = append(given, h)
	}
	for name, h := range p.server.Held() {
		if err := t.Say(note{Say: sayPort, Driver: driverHeld, Link: name, Why: string(h.Value)}, h.Descriptors...); err != nil {
			return nil, fmt.Errorf("held %s: %w", name, err)
		}
	}
	if err := t.Say(note{Say: sayConnections, Kept: string(text)}, int(p.connections.file.Fd())); err != nil {
		return nil, err
	}
	ready, _, err := hear(t, prepareTime, sayReady)
	return slices.DeleteFunc(given, func(h ports.Heritable) bool { return slices.Contains(ready.Declined, h.Name()) }), err
}

// surrender stops the switch and leaves everything to the next one. stop ends the workers.
func (p *Process) surrender(s *successor, stop func() error) error {
	defer s.Close()
	// Ports that are not handed over close while the others move packets. Meanwhile the kernel
	// returns connections and entries get their counters, so that little work is left.
	err := p.ports.closeRest(s.given)
	p.sw.BringBack()
	p.sw.LearnedFlows()
	still := p.sw.Clock()
	err = errors.Join(err, stop())
	for _, h := range s.given {
		h.Rest()
	}
	p.sw.Poll() // no other process has the frames that ports have read but not handed out
	p.sw.BringBack()
	stopped := note{Say: sayStopped, Still: still}
	for _, f := range p.sw.LearnedFlows() {
		stopped.Learned = append(stopped.Learned, telemetry.Learned{Entry: f.Entry, Age: f.Duration, Idle: f.Idle})
	}
	if said := s.Say(stopped); said != nil {
		return errors.Join(said, err)
	}
	if _, _, heard := hear(s.Talk, beginTime, sayRunning); heard != nil {
		return errors.Join(fmt.Errorf("the next switch does not begin: %w", heard), err)
	}
	p.connections.Lend(true)
	p.Log.Info("another switch has taken over")
	return errors.Join(errHandedOver, err)
}

// heritable are the ports that continue in another process.
func (s *PortSet) heritable() (all []ports.Heritable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.opened {
		if h, ok := p.(ports.Heritable); ok {
			all = append(all, h)
		}
	}
	return all
}

// closeRest closes the ports that were not given, so that the other process can open them.
func (s *PortSet) closeRest(given []ports.Heritable) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for no, p := range s.opened {
		if !slices.ContainsFunc(given, func(h ports.Heritable) bool { return ports.Port(h) == p }) {
			errs = append(errs, s.sw.Switch.RemovePort(no))
		}
	}
	return errors.Join(errs...)
}

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

// A switch process that hands over to another (takeover.go). Their messages, by door.MessageConn after
// POST /v1/take-over:
//
//	next                                  this one
//	hello, with the layouts it knows   →  refuses changes from here on
//	                                   ←  offload, if it is confined, with descriptors
//	                                   ←  port, once for each port, with descriptors
//	                                   ←  port with driver "held", once for each value that it holds for controllers
//	                                   ←  connections, with their file; entries and specs of ports, as in the file
//	builds its switch and ports
//	ready, with ports that it opens
//	itself                             →  closes those, and stops moving packets
//	                                   ←  stopped, with the learned entries
//	finds the connections, and moves
//	packets
//	running                            →  ends
//
// If anything fails before the next one is ready, this one continues unchanged. If the next one
// fails later, this one ends as if it had been killed. Its supervisor starts it again, with the
// entries, ports and connections of its directory.

// handOverProtocol is the upgrade's protocol. Its number changes with the messages.
const handOverProtocol = "antrail-switch-hand-over/2"

// handOverMessage is a message of either side.
type handOverMessage struct {
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

// receiveOneOf waits for a message of one of some kinds. Its descriptors belong to the caller. A
// refusal by the other switch is an error.
func receiveOneOf(t door.MessageConn, waitAtMost time.Duration, what ...string) (n handOverMessage, fds []int, err error) {
	if err := t.SetReadDeadline(time.Now().Add(waitAtMost)); err != nil {
		return n, nil, err
	}
	fds, err = t.Receive(&n)
	switch {
	case err != nil:
	case n.Say == sayNo:
		err = errors.New(n.Why)
	case !slices.Contains(what, n.Say):
		err = fmt.Errorf("the other switch sends the message %.20q, want %s", n.Say, strings.Join(what, " or "))
	}
	if err != nil {
		door.CloseDescriptors(fds)
		fds = nil
	}
	return n, fds, err
}

// successor is a switch that is ready to take over.
type successor struct {
	door.MessageConn
	given []ports.Heritable
}

// answerTakeOver gives the caller the switch's state, and waits until the caller is ready. serve
// then ends, and stops this switch (stopForSuccessor).
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
			err = errors.New("this switch is handing over already, or ending")
		}
	}
	p.server.Freeze(false)
	p.Log.Warn("another switch could not take over; this one continues", "error", err)
	t.Send(handOverMessage{Say: sayNo, Why: err.Error()}) // it may have hung up
	t.Close()
}

// handOver gives the next switch the state and descriptors, and waits until it is ready. It
// returns the ports with which the next one continues.
func (p *Process) handOver(t door.MessageConn) (given []ports.Heritable, err error) {
	hello, _, err := receiveOneOf(t, wordTime, sayHello)
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
	p.Log.Info("another switch is about to take over; changes are refused until it has")
	text, err := composeKept(p.sw, p.ports)
	if err != nil {
		return nil, err
	}
	if all := p.ports.open.Offload.Descriptors(); p.Confined && all != nil {
		if err := t.Send(handOverMessage{Say: sayOffload, Layout: offload.Layout}, all...); err != nil {
			return nil, err
		}
	}
	for _, h := range p.ports.heritable() {
		driver := h.Info().Driver
		if (driver == door.DriverAFXDP || driver == door.DriverUplink) && hello.Layout != afxdp.Layout {
			p.Log.Warn("port is not handed over: the other switch knows another layout of it", "port", h.Name(), "theirs", hello.Layout, "ours", afxdp.Layout)
			continue
		}
		if err := t.Send(handOverMessage{Say: sayPort, Driver: driver, Link: h.Name()}, h.Descriptors()...); err != nil {
			return nil, fmt.Errorf("port %s: %w", h.Name(), err)
		}
		given = append(given, h)
	}
	for name, h := range p.server.Held() {
		if err := t.Send(handOverMessage{Say: sayPort, Driver: driverHeld, Link: name, Why: string(h.Value)}, h.Descriptors...); err != nil {
			return nil, fmt.Errorf("held %s: %w", name, err)
		}
	}
	if err := t.Send(handOverMessage{Say: sayConnections, Kept: string(text)}, int(p.connections.file.Fd())); err != nil {
		return nil, err
	}
	ready, _, err := receiveOneOf(t, prepareTime, sayReady)
	return slices.DeleteFunc(given, func(h ports.Heritable) bool { return slices.Contains(ready.Declined, h.Name()) }), err
}

// stopForSuccessor stops the switch, and returns when the next one moves packets. stop ends the
// workers.
func (p *Process) stopForSuccessor(s *successor, stop func() error) error {
	defer s.Close()
	// Ports that are not handed over close while the others still move packets. The first
	// BringBack and LearnedFlows do most of their work before the workers stop.
	err := p.ports.closeRest(s.given)
	p.sw.BringBack()
	p.sw.LearnedFlows()
	still := p.sw.Clock()
	err = errors.Join(err, stop())
	for _, h := range s.given {
		h.Rest()
	}
	p.sw.Poll() // forward the frames that ports have read but not handed out: no other process has them
	p.sw.BringBack()
	stopped := handOverMessage{Say: sayStopped, Still: still}
	for _, f := range p.sw.LearnedFlows() {
		stopped.Learned = append(stopped.Learned, telemetry.Learned{Entry: f.Entry, Age: f.Duration, Idle: f.Idle})
	}
	if said := s.Send(stopped); said != nil {
		return errors.Join(said, err)
	}
	if _, _, heard := receiveOneOf(s.MessageConn, beginTime, sayRunning); heard != nil {
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

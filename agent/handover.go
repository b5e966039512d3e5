package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/switchd"
)

// The agent that runs, when another is to take its place (handovertalk.go). What
// the other gets is what makes the difference between a port that goes on and one
// that is made anew: the gateway's tap, with its addresses and routes, the pods'
// packet sockets and programs, sockets of AF_XDP with the memory of their frames, the
// tunnel's sockets, and the lock of the connections' file. Ports that the other cannot
// go on with are closed, and opened by the other.

// ErrTakenOver is why an agent ended that another has taken over from.
var ErrTakenOver = errors.New("another agent has taken over")

// ErrAgain is why an agent ended that is to be started again, as after a kill: its
// heir failed when it had stopped already, or the one before it has left.
var ErrAgain = errors.New("to be started again")

const (
	// preparation is how long an heir may take to build its switch, beginning is how
	// long to move packets when it may, and a word is how long to say something.
	preparation = 2 * time.Minute
	beginning   = 30 * time.Second
	word        = 5 * time.Second
)

// heir is an agent that is ready to take over.
type heir struct {
	talk
	given []ports.Heritable
	done  chan struct{} // closed when it has, or has failed
}

// answerTakeOver speaks with an agent that wants to take over, until it has.
func (a *Agent) answerTakeOver(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != handOverProtocol {
		http.Error(w, fmt.Sprintf("this agent speaks %s, not %q: stop it and start the other", handOverProtocol, r.Header.Get("Upgrade")), http.StatusUpgradeRequired)
		return
	}
	t, err := hijack(w, handOverProtocol)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer t.Close()
	if err := a.handOver(ctx, t); err != nil {
		a.log.Warn("another agent was to take over, and has not; this one goes on", "error", err)
		t.say(note{Say: sayNo, Why: err.Error()}) // it may have hung up
	}
}

// hijack takes the connection from the HTTP server, for another protocol.
func hijack(w http.ResponseWriter, protocol string) (talk, error) {
	t, err := door.Hijack(w, protocol)
	return talk{t}, err
}

// handOver gives an heir all it needs, and has serve do the rest when it is ready.
// The error is for what leaves this agent as it is.
func (a *Agent) handOver(ctx context.Context, t talk) error {
	hello, _, err := t.hear(word, sayHello)
	if err != nil {
		return err
	}
	if err := a.suits(&hello); err != nil {
		return err
	}
	if a.live != nil {
		a.live.cni.calls.Lock() // what the plugin has asked for is done, and nothing more is asked
	}
	if !a.changes.pass() { // it is over with this agent; the plugin asks the next one
		return errors.New("another agent has taken over")
	}
	a.log.Info("another agent is about to take over; nothing changes until it has")
	stopped := context.AfterFunc(ctx, func() { t.Close() })
	given, err := a.bequeath(t, hello.Layout)
	stopped()
	if err != nil {
		a.goOn()
		return err
	}
	h := &heir{t, given, make(chan struct{})}
	select {
	case a.heirs <- h:
		<-h.done
		return nil
	case <-ctx.Done():
		a.goOn()
		return errors.New("this agent is being stopped")
	}
}

// goOn lets changes happen again.
func (a *Agent) goOn() {
	a.changes.leave()
	if a.live != nil {
		a.live.cni.calls.Unlock()
	}
}

// suits says why an agent cannot take over from this one.
func (a *Agent) suits(hello *note) error {
	switch {
	case a.local == nil:
		return errors.New("its switch is a process of its own: give the other agent the same switch, and it takes over that")
	case hello.Config != a.config.identity():
		return errors.New("its configuration has another Node, gateway, tunnel, peers, podCIDRs or ports: stop this agent and start the other")
	case a.live != nil && a.config.snapshotFile() == "":
		return errors.New("flowSnapshot is off: stop this agent and start the other")
	case !a.ready.Load():
		return errors.New("this agent is not ready itself")
	}
	return nil
}

// leaveTunnel closes a tunnel that was not given, for the heir to open.
func (a *Agent) leaveTunnel(given []ports.Heritable) error {
	if a.here == nil || isOf(given, a.here) {
		return nil
	}
	return a.sw.RemovePort(a.config.Tunnel.OFPort)
}

// isOf says whether a port is one of some.
func isOf(some []ports.Heritable, p ports.Port) bool {
	return slices.ContainsFunc(some, func(one ports.Heritable) bool { return ports.Port(one) == p })
}

// bequeath keeps the entries, hands everything over that is open and that an heir who
// knows this layout of AF_XDP can take, and waits until the heir is ready. It returns
// what the heir goes on with.
func (a *Agent) bequeath(t talk, layout int) (given []ports.Heritable, err error) {
	if err := a.keepForHeir(); err != nil {
		return nil, err
	}
	for _, p := range a.heritable() {
		driver := p.Info().Driver
		if (driver == DriverAFXDP || driver == switchd.DriverUplink) && layout != afxdp.Layout {
			a.log.Warn("port is not handed over: the other agent knows another layout of it", "port", p.Name(), "theirs", layout, "ours", afxdp.Layout)
			continue
		}
		if err := t.say(note{Say: sayPort, Name: p.Name(), Driver: driver}, p.Descriptors()...); err != nil {
			return nil, fmt.Errorf("port %s: %w", p.Name(), err)
		}
		given = append(given, p)
	}
	if err := t.say(note{Say: sayArena}, int(a.local.ArenaFile().Fd())); err != nil {
		return nil, err
	}
	ready, _, err := t.hear(preparation, sayReady)
	return slices.DeleteFunc(given, func(p ports.Heritable) bool { return slices.Contains(ready.Declined, p.Name()) }), err
}

// keepForHeir writes the flow snapshot as things are. An agent that has not yet
// installed what its objects say has the file that it began with.
func (a *Agent) keepForHeir() error {
	if a.live == nil {
		return nil
	}
	select {
	case <-a.live.synced:
		return a.writeSnapshot(a.config.snapshotFile())
	default:
		return nil
	}
}

// surrender stops the switch and leaves all to the heir. The caller's others are
// everything that runs but the switch.
func (a *Agent) surrender(h *heir, others, turning *group) error {
	defer close(h.done)
	a.changes.close() // who waits for it is to end, too
	// What is not handed over is closed while the other ports move packets.
	err := errors.Join(others.stop(), a.pods.closeRest(h.given), a.leaveTunnel(h.given))
	still := a.clock()
	err = errors.Join(err, turning.stop())
	for _, p := range h.given {
		p.Rest()
	}
	a.local.Poll() // what ports have read and not handed out, nobody else has
	a.local.BringBack()
	if said := h.say(note{Say: sayStopped, Still: still, Learned: learnedLines(a.sw)}); said != nil {
		return errors.Join(ErrAgain, said, err)
	}
	if _, _, heard := h.hear(beginning, sayRunning); heard != nil {
		return errors.Join(ErrAgain, heard, err)
	}
	a.left = true
	a.log.Info("another agent has taken over")
	return errors.Join(ErrTakenOver, err)
}

// learnedLines are what packets have learned, as lines of a flow snapshot.
func learnedLines(sw door.Switch) (lines []string) {
	for _, f := range sw.Flows() {
		if f.Learned {
			l := dataplane.Learned{Entry: f.Entry, Age: f.Duration, Idle: f.Idle}
			lines = append(lines, string(appendLearned(nil, &l)))
		}
	}
	return lines
}

// heritable are the ports that go on in another process.
func (a *Agent) heritable() []ports.Heritable {
	all := append(a.pods.heritable(), a.gateway)
	if a.here != nil {
		all = append(all, a.here)
	}
	return all
}

// heritable are the pods' ports that go on in another process.
func (p *podPorts) heritable() (all []ports.Heritable) {
	for _, have := range p.have {
		if h, ok := have.port.(ports.Heritable); ok {
			all = append(all, h)
		}
	}
	return all
}

// closeRest closes those that were not given, for the other process to open.
func (p *podPorts) closeRest(given []ports.Heritable) error {
	var errs []error
	for _, have := range p.have {
		if !isOf(given, have.port) {
			errs = append(errs, p.sw.RemovePort(have.OFPort))
		}
	}
	return errors.Join(errs...)
}

package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/ports"
	"github.com/vishvananda/netlink"
)

// podPorts keeps the switch's pod ports equal to the links that are there. A
// pod's link vanishes with the pod, whenever that is, and may come back as
// another link of the same name; neither may disturb the rest of the switch. A
// port whose link the switch makes itself enters when it is wanted.
//
// The kernel's link messages only say "look again": what is done follows from
// comparing what is wanted with what is there, so a lost message costs at most
// the time until the next look.
type podPorts struct {
	sw    portSwitch
	open  func(Port) (ports.Port, error)
	log   *slog.Logger
	again chan struct{} // what is wanted has changed
	// changes is passed before ports come or go; nil: always.
	changes *gate

	// opened is called after a port was added.
	opened func()

	mu   sync.Mutex
	want []Port
	have map[string]openPort // by link; written by reconcile alone

	failed map[string]string // last error of links that could not be opened
}

// openPort is a port in the switch.
type openPort struct {
	Port
	index int // of its link
	port  ports.Port
}

// portSwitch is the part of dataplane.Switch that podPorts uses.
type portSwitch interface {
	AddPort(no uint32, p ports.Port) error
	RemovePort(no uint32) error
}

// lookAgain is how long a lost link message, or a link that could not be
// opened, waits for the next try.
const lookAgain = 2 * time.Second

func newPodPorts(want []Port, sw portSwitch, open func(Port) (ports.Port, error), log *slog.Logger) *podPorts {
	return &podPorts{
		want: want, sw: sw, open: open, log: log, again: make(chan struct{}, 1),
		have: map[string]openPort{}, failed: map[string]string{}, opened: func() {},
	}
}

// set says which ports are wanted from now on. It may be called from any
// goroutine.
func (p *podPorts) set(want []Port) {
	p.mu.Lock()
	p.want = want
	p.mu.Unlock()
	select {
	case p.again <- struct{}{}:
	default: // it will look anyway
	}
}

// wanted are the ports that are wanted now.
func (p *podPorts) wanted() []Port {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.want
}

// has says whether a link is open as a port of that number.
func (p *podPorts) has(link string, no uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have[link].OFPort == no
}

// runPodPorts looks after every link message and from time to time, until ctx
// ends.
func (p *podPorts) runPodPorts(ctx context.Context) {
	changes := make(chan netlink.LinkUpdate, 64)
	if err := netlink.LinkSubscribe(changes, ctx.Done()); err != nil {
		p.log.Warn("no link messages; looking at the links from time to time", "error", err)
		changes = nil
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-p.again:
		case _, ok := <-changes:
			if !ok { // the subscription broke; the ticker remains
				changes = nil
			}
		}
		p.reconcile()
	}
}

// reconcile looks at the links once: ports that are not wanted, or whose link
// is gone, leave the switch; ports whose link is there and up enter it.
func (p *podPorts) reconcile() {
	if !p.changes.pass() {
		return
	}
	defer p.changes.leave()
	there, err := linksUp()
	if err != nil {
		p.log.Error("cannot list links", "error", err)
		return
	}
	want := p.wanted()
	for _, had := range p.have {
		switch {
		case !slices.Contains(want, had.Port):
			p.remove(had.Port, "it is not wanted any more")
		case there[had.Link].index != had.index:
			p.remove(had.Port, "its link is gone")
		}
	}
	for _, w := range want {
		_, in := p.have[w.Link]
		if link := there[w.Link]; !in && (link.up || w.Driver == DriverTap) {
			p.add(w)
		}
	}
}

type linkState struct {
	index int
	up    bool
}

// linksUp lists the links of the Node.
func linksUp() (map[string]linkState, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	m := make(map[string]linkState, len(all))
	for _, l := range all {
		m[l.Name] = linkState{l.Index, l.Flags&net.FlagUp != 0}
	}
	return m, nil
}

func (p *podPorts) remove(w Port, why string) {
	p.mu.Lock()
	delete(p.have, w.Link)
	p.mu.Unlock()
	if err := p.sw.RemovePort(w.OFPort); err != nil {
		p.log.Warn("port removed, with an error", "port", w.Name, "link", w.Link, "error", err)
		return
	}
	p.log.Info("port removed", "port", w.Name, "link", w.Link, "why", why)
}

// add opens a port. An error is logged once, and tried again later.
func (p *podPorts) add(w Port) {
	port, index, err := p.enter(w)
	if err != nil {
		if p.failed[w.Link] != err.Error() {
			p.log.Error("port cannot be opened; trying again", "port", w.Name, "link", w.Link, "error", err)
		}
		p.failed[w.Link] = err.Error()
		return
	}
	delete(p.failed, w.Link)
	p.mu.Lock()
	p.have[w.Link] = openPort{w, index, port}
	p.mu.Unlock()
	p.opened()
	i := port.Info()
	p.log.Info("port added", "port", w.Name, "ofPort", w.OFPort, "link", w.Link, "driver", i.Driver, "mode", i.Mode, "why", i.Why)
}

// enter opens a port and gives it to the switch. index is its link's.
func (p *podPorts) enter(w Port) (port ports.Port, index int, err error) {
	if port, err = p.open(w); err != nil {
		return nil, 0, err
	}
	link, err := net.InterfaceByName(w.Link)
	if err == nil {
		err = p.sw.AddPort(w.OFPort, port)
	}
	if err != nil {
		return nil, 0, errors.Join(err, port.Close())
	}
	return port, link.Index, nil
}

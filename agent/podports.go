package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/dataplane"
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
	// tags lets pods send VLAN tags.
	tags bool

	// opened is called after a port was added, lost after one was removed whose link
	// is gone.
	opened, lost func()

	mu      sync.Mutex
	want    []Port
	have    map[string]openPort  // by link; written under reconcile alone
	failed  map[string]string    // last error of links that could not be opened
	gone    map[string]string    // drivers of ports whose links are gone, by link
	links   map[string]linkState // at the last look; nil before the first
	refused bool                 // a port could not be opened in this look
	retry   time.Duration        // since the look before, when one could not be then
}

// openPort is a port in the switch.
type openPort struct {
	Port
	index  int // of its link
	port   ports.Port
	driver string // that the port has, where Port.Driver may be auto
}

// portSwitch is the part of dataplane.Switch that podPorts uses.
type portSwitch interface {
	AddSecuredPort(no uint32, p ports.Port, security dataplane.PortSecurity) error
	SecurePort(no uint32, security dataplane.PortSecurity) error
	RemovePort(no uint32) error
}

const (
	// lookAgain is how long a lost link message waits for the next look.
	lookAgain = 2 * time.Second
	// firstRetry is how long a link that could not be opened waits for the next try; each
	// further one takes twice as long, up to lookAgain. A queue of an agent before that
	// was killed is free when the kernel has taken its socket apart.
	firstRetry = 20 * time.Millisecond
	// openings is how many ports are opened at once: most of that is waiting for the
	// kernel.
	openings = 8
)

func newPodPorts(want []Port, sw portSwitch, open func(Port) (ports.Port, error), log *slog.Logger) *podPorts {
	return &podPorts{
		want: want, sw: sw, open: open, log: log, again: make(chan struct{}, 1),
		have: map[string]openPort{}, failed: map[string]string{}, gone: map[string]string{}, opened: func() {}, lost: func() {},
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

// missingPort is a port that is wanted and is not in the switch.
type missingPort struct {
	Port
	why linkFault
}

// missing lists the ports that are wanted and not in the switch. It lists none before
// the first look, and none of a nil p, which is that of a pipeline without a Node.
func (p *podPorts) missing() (all []missingPort) {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.want {
		if _, in := p.have[w.Link]; in || p.links == nil {
			continue
		}
		m := missingPort{w, p.whyMissing(&w)}
		m.Driver = cmp.Or(p.gone[w.Link], w.Driver)
		all = append(all, m)
	}
	return all
}

// whyMissing says why a port that is wanted is not in the switch.
func (p *podPorts) whyMissing(w *Port) linkFault {
	link, there := p.links[w.Link]
	_, was := p.gone[w.Link]
	failed, tried := p.failed[w.Link]
	switch {
	case !there && was:
		return linkGone(w.Link, "is gone")
	case !there && w.Driver != DriverTap:
		return linkGone(w.Link, "is not there")
	case tried:
		return linkRefused(w.Link, failed)
	case there && !link.up:
		return linkDown(w.Link, dataplane.DropNoSuchPort.String())
	}
	return linkRefused(w.Link, "the agent has not tried yet")
}

// runPodPorts looks after every link message and from time to time, until ctx
// ends.
func (p *podPorts) runPodPorts(ctx context.Context) {
	changes := make(chan netlink.LinkUpdate, 64)
	if err := netlink.LinkSubscribe(changes, ctx.Done()); err != nil {
		p.log.Warn("no link messages; looking at the links from time to time", "error", err)
		changes = nil
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.nextLook()):
		case <-p.again:
		case _, ok := <-changes:
			if !ok { // the subscription broke; the ticker remains
				changes = nil
			}
		}
		p.reconcile()
	}
}

// nextLook is how long to wait after a look.
func (p *podPorts) nextLook() time.Duration {
	if !p.refused {
		p.retry = 0
		return lookAgain
	}
	p.retry = min(max(2*p.retry, firstRetry), lookAgain)
	return p.retry
}

// reconcile looks at the links once: ports that are not wanted, or whose link
// is gone, leave the switch; ports whose link is there and up enter it.
func (p *podPorts) reconcile() {
	there, err := linksUp()
	if err != nil {
		p.log.Error("cannot list links", "error", err)
		return
	}
	want := p.look(there)
	for _, had := range p.have {
		at := slices.IndexFunc(want, had.opens)
		switch {
		case at < 0:
			p.remove(had.Port)
			p.log.Info("port removed: it is not wanted any more", "port", had.Name, "link", had.Link)
		case there[had.Link].index != had.index:
			p.tellGone(&had)
			p.remove(had.Port)
			p.lost()
		case want[at] != had.Port:
			p.secure(had, want[at].MAC)
		case !there[had.Link].running:
			had.port.Info() // the port sees it, too, and counts what is sent there as lost
		}
	}
	p.refused = false
	var missing []Port
	for _, w := range want {
		_, in := p.have[w.Link]
		if link := there[w.Link]; !in && (link.up || w.Driver == DriverTap) {
			missing = append(missing, w)
		}
	}
	slices.SortStableFunc(missing, podsFirst)
	p.addAll(missing)
}

// look keeps the links as they are at a look, and returns the ports that are wanted.
// A port that is not wanted any more does not count as gone.
func (p *podPorts) look(there map[string]linkState) []Port {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = there
	maps.DeleteFunc(p.gone, func(link, _ string) bool {
		return !slices.ContainsFunc(p.want, func(w Port) bool { return w.Link == link })
	})
	return p.want
}

// tellGone notes and logs that the link of a port has vanished.
func (p *podPorts) tellGone(had *openPort) {
	p.mu.Lock()
	p.gone[had.Link] = had.driver
	p.mu.Unlock()
	f := linkGone(had.Link, "is gone")
	p.log.Warn("a port leaves the switch: its link is gone, and what is sent there is lost", "port", had.Name, "link", had.Link, "next", f.next)
}

// podsFirst orders ports so that links of pods come before those that the switch makes.
func podsFirst(a, b Port) int {
	made := func(p Port) int {
		if p.Driver == DriverTap {
			return 1
		}
		return 0
	}
	return made(a) - made(b)
}

// addAll opens ports, some of them at once.
func (p *podPorts) addAll(missing []Port) {
	if len(missing) == 1 { // as nearly always
		p.add(missing[0])
		return
	}
	var opening sync.WaitGroup
	room := make(chan struct{}, openings)
	for _, w := range missing {
		room <- struct{}{}
		opening.Go(func() { p.runAdd(w, room) })
	}
	opening.Wait()
}

// runAdd opens one of several ports, and makes room for the next.
func (p *podPorts) runAdd(w Port, room <-chan struct{}) {
	p.add(w)
	<-room
}

type linkState struct {
	index   int
	up      bool
	running bool // and it has a carrier: the other end is up
}

// linksUp lists the links of the Node.
func linksUp() (map[string]linkState, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	m := make(map[string]linkState, len(all))
	for _, l := range all {
		m[l.Name] = linkState{l.Index, l.Flags&net.FlagUp != 0, l.Flags&net.FlagRunning != 0}
	}
	return m, nil
}

func (p *podPorts) remove(w Port) {
	p.mu.Lock()
	delete(p.have, w.Link)
	p.mu.Unlock()
	if err := p.sw.RemovePort(w.OFPort); err != nil {
		p.log.Warn("port removed, with an error", "port", w.Name, "link", w.Link, "error", err)
	}
}

// secure gives a port that is open the security of another MAC.
func (p *podPorts) secure(o openPort, mac MAC) {
	o.MAC = mac
	if err := p.sw.SecurePort(o.OFPort, o.security(p.tags)); err != nil {
		p.log.Error("port security cannot be changed", "port", o.Name, "mac", mac, "error", err)
		return
	}
	p.mu.Lock()
	p.have[o.Link] = o
	p.mu.Unlock()
	p.log.Info("port security changed", "port", o.Name, "mac", mac)
}

// add opens a port. An error is logged once, and tried again later.
func (p *podPorts) add(w Port) {
	o, err := p.enter(w)
	if p.note(o, err); err != nil {
		return
	}
	p.opened()
	i := o.port.Info()
	p.log.Info("port added", "port", w.Name, "ofPort", w.OFPort, "link", w.Link, "driver", i.Driver, "mode", i.Mode, "why", i.Why)
}

// note takes down that a port is open, or why it is not; the same reason is logged
// once.
func (p *podPorts) note(o openPort, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		delete(p.failed, o.Link)
		delete(p.gone, o.Link)
		p.have[o.Link] = o
		return
	}
	p.refused = true
	if p.failed[o.Link] != err.Error() {
		p.log.Error("port cannot be opened; trying again", "port", o.Name, "link", o.Link, "error", err)
	}
	p.failed[o.Link] = err.Error()
}

// enter opens a port and gives it to the switch.
func (p *podPorts) enter(w Port) (openPort, error) {
	o := openPort{Port: w}
	var err error
	if o.port, err = p.open(w); err != nil {
		return o, err
	}
	o.driver = o.port.Info().Driver // before the switch may take the port away
	link, err := net.InterfaceByName(w.Link)
	if err == nil {
		o.index, err = link.Index, p.sw.AddSecuredPort(w.OFPort, o.port, w.security(p.tags))
	}
	if err != nil {
		return o, errors.Join(err, o.port.Close())
	}
	return o, nil
}

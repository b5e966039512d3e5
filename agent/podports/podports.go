package podports

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/ports"
)

// Ports keeps the switch's pod ports equal to the existing links. A pod's link vanishes with
// the pod, and may come back as another link of the same name. Neither disturbs the rest of the
// switch. A port whose link the switch makes opens when it is wanted.
//
// The kernel's link messages only trigger a check, which compares the wanted ports with the
// existing links. If the kernel has lost messages, it says so, which triggers a check, too.
type Ports struct {
	sw    portSwitch
	open  func(config.Port) (Opened, error)
	log   *slog.Logger
	again chan struct{} // the wanted ports have changed
	// Tags lets pods send VLAN tags.
	Tags bool

	// Opened is called after a port was added, Lost after one was removed because its link is
	// gone.
	Opened, Lost func()

	mu      sync.Mutex
	want    []config.Port
	have    map[string]openPort  // by link; written only under Reconcile
	failed  map[string]string    // last error of links that could not be opened
	gone    map[string]string    // drivers of ports whose links are gone, by link
	links   map[string]linkState // at the last check; nil before the first
	refused bool                 // a port could not be opened in this check
	retry   time.Duration        // time since the last check, if a port could not be opened then
}

// openPort is a port in the switch.
type openPort struct {
	config.Port
	index  int // of its link
	port   Opened
	driver string // the port's driver, if Port.Driver is auto
}

// Opened is a port that the switch has.
type Opened interface {
	// Info is the switch's record of the port; zero if the switch has lost it.
	Info() ports.Info
}

// portSwitch changes ports that the switch has.
type portSwitch interface {
	SecurePort(no uint32, security l2.PortSecurity) error
	RemovePort(no uint32) error
}

const (
	// lookAgain is the pause between two checks without link messages, lookWatched with them.
	lookAgain   = 2 * time.Second
	lookWatched = time.Minute
	// firstRetry is the pause before the next try to open a link. It doubles with each try, up
	// to lookAgain. A killed agent's queue is free once the kernel has closed its socket.
	firstRetry = 20 * time.Millisecond
)

// AtOnce is how many ports are opened in parallel. Most of that time waits for the kernel.
const AtOnce = 8

// New makes Ports that keep the ports of sw equal to want, once Run runs. open opens a port
// in sw whose link exists.
func New(want []config.Port, sw portSwitch, open func(config.Port) (Opened, error), log *slog.Logger) *Ports {
	return &Ports{
		want: want, sw: sw, open: open, log: log, again: make(chan struct{}, 1),
		have: map[string]openPort{}, failed: map[string]string{}, gone: map[string]string{}, Opened: func() {}, Lost: func() {},
	}
}

// Set sets the wanted ports. Any goroutine may call it.
func (p *Ports) Set(want []config.Port) {
	p.mu.Lock()
	p.want = want
	p.mu.Unlock()
	select {
	case p.again <- struct{}{}:
	default: // a check is pending already
	}
}

// Wanted are the ports that are wanted now.
func (p *Ports) Wanted() []config.Port {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.want
}

// Has says whether a link is open as a port of that number.
func (p *Ports) Has(link string, no uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have[link].OFPort == no
}

// Missing is a wanted port that is not in the switch.
type Missing struct {
	config.Port
	Why Fault
}

// Missing lists the wanted ports that are not in the switch. It is empty before the first
// check, and for a nil p, which a pipeline without a Node has.
func (p *Ports) Missing() (all []Missing) {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.want {
		if _, in := p.have[w.Link]; in || p.links == nil {
			continue
		}
		m := Missing{w, p.whyMissing(&w)}
		m.Driver = cmp.Or(p.gone[w.Link], w.Driver)
		all = append(all, m)
	}
	return all
}

// whyMissing says why a wanted port is not in the switch.
func (p *Ports) whyMissing(w *config.Port) Fault {
	link, there := p.links[w.Link]
	_, was := p.gone[w.Link]
	failed, tried := p.failed[w.Link]
	switch {
	case !there && was:
		return Gone(w.Link, "is gone")
	case !there && w.Driver != config.DriverTap:
		return Gone(w.Link, "is not there")
	case tried:
		return Refused(w.Link, failed)
	case there && !link.up:
		return Down(w.Link, telemetry.DropNoSuchPort.String())
	}
	return Refused(w.Link, "the agent has not tried yet")
}

// Run opens and closes ports until ctx ends. It checks when changes reports a link, after Set,
// and regularly. changes may be nil.
func (p *Ports) Run(ctx context.Context, changes <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.nextLook(changes != nil)):
		case <-p.again:
		case _, ok := <-changes:
			if !ok { // the watch has ended; the regular checks remain
				changes = nil
			}
		}
		p.Reconcile()
	}
}

// nextLook is the pause before the next check. watched says that the kernel sends link messages.
func (p *Ports) nextLook(watched bool) time.Duration {
	if !p.refused {
		p.retry = 0
		if watched {
			return lookWatched
		}
		return lookAgain
	}
	p.retry = min(max(2*p.retry, firstRetry), lookAgain)
	return p.retry
}

// Reconcile checks the links once. Ports that are unwanted, or whose link is gone, leave the
// switch. Ports whose link exists and is up enter it.
func (p *Ports) Reconcile() {
	there, err := linksUp()
	if err != nil {
		p.log.Error("cannot list links", "error", err)
		return
	}
	want := p.look(there)
	for _, had := range p.have {
		at := slices.IndexFunc(want, func(p config.Port) bool { return opensAlike(had.Port, p) })
		switch {
		case at < 0:
			p.remove(had.Port)
			p.log.Info("port removed: no pod or configuration has it", "port", had.Name, "link", had.Link)
		case there[had.Link].index != had.index:
			p.tellGone(&had)
			p.remove(had.Port)
			p.Lost()
		case want[at] != had.Port:
			p.secure(had, &want[at])
		case !there[had.Link].running:
			had.port.Info() // the port reads its link's state, and counts packets to it as dropped
		}
	}
	p.refused = false
	var missing []config.Port
	for _, w := range want {
		_, in := p.have[w.Link]
		if link := there[w.Link]; !in && (link.up || w.Driver == config.DriverTap) {
			missing = append(missing, w)
		}
	}
	slices.SortStableFunc(missing, podsFirst)
	p.addAll(missing)
}

// look stores the state of the links, and returns the wanted ports. A port that is not wanted
// any more does not count as gone.
func (p *Ports) look(there map[string]linkState) []config.Port {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = there
	maps.DeleteFunc(p.gone, func(link, _ string) bool {
		return !slices.ContainsFunc(p.want, func(w config.Port) bool { return w.Link == link })
	})
	return p.want
}

// tellGone records and logs that the link of a port has vanished.
func (p *Ports) tellGone(had *openPort) {
	p.mu.Lock()
	p.gone[had.Link] = had.driver
	p.mu.Unlock()
	f := Gone(had.Link, "is gone")
	p.log.Warn("a port leaves the switch: its link is gone, and packets to it are dropped", "port", had.Name, "link", had.Link, "next", f.Next)
}

// podsFirst orders ports so that links of pods come before those that the switch makes.
func podsFirst(a, b config.Port) int {
	made := func(p config.Port) int {
		if p.Driver == config.DriverTap {
			return 1
		}
		return 0
	}
	return made(a) - made(b)
}

// addAll opens ports, some of them in parallel.
func (p *Ports) addAll(missing []config.Port) {
	if len(missing) == 1 { // the usual case
		p.addPort(missing[0])
		return
	}
	var adding sync.WaitGroup
	room := make(chan struct{}, AtOnce)
	for _, w := range missing {
		room <- struct{}{}
		adding.Go(func() { p.runAdd(w, room) })
	}
	adding.Wait()
}

// runAdd opens one of several ports, and makes room for the next.
func (p *Ports) runAdd(w config.Port, room <-chan struct{}) {
	p.addPort(w)
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

func (p *Ports) remove(w config.Port) {
	p.mu.Lock()
	delete(p.have, w.Link)
	p.mu.Unlock()
	if err := p.sw.RemovePort(w.OFPort); err != nil {
		p.log.Warn("port removed, with an error", "port", w.Name, "link", w.Link, "error", err)
	}
}

// secure gives an open port the wanted security.
func (p *Ports) secure(o openPort, want *config.Port) {
	o.MAC, o.VLAN = want.MAC, want.VLAN
	if err := p.sw.SecurePort(o.OFPort, Security(&o.Port, p.Tags)); err != nil {
		p.log.Error("port security cannot be changed", "port", o.Name, "mac", o.MAC, "error", err)
		return
	}
	p.mu.Lock()
	p.have[o.Link] = o
	p.mu.Unlock()
	p.log.Info("port security changed", "port", o.Name, "mac", o.MAC)
}

// addPort opens a port. It logs an error once; a later check tries again.
func (p *Ports) addPort(w config.Port) {
	o, err := p.enter(w)
	if p.noteOpened(o, err); err != nil {
		return
	}
	p.Opened()
	i := o.port.Info()
	p.log.Info("port added", "port", w.Name, "ofPort", w.OFPort, "link", w.Link, "driver", i.Driver, "mode", i.Mode, "why", i.Why)
}

// noteOpened records that a port is open, or why not. It logs the same reason once.
func (p *Ports) noteOpened(o openPort, err error) {
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

// enter opens a port in the switch.
func (p *Ports) enter(w config.Port) (openPort, error) {
	o := openPort{Port: w}
	var err error
	if o.port, err = p.open(w); err != nil {
		return o, err
	}
	o.driver = o.port.Info().Driver // before the switch may lose the port
	link, err := net.InterfaceByName(w.Link)
	if err == nil {
		o.index = link.Index
	}
	return o, err
}

package dataplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/reassembly"
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/offload"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/sched"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports"
)

var (
	errShortFrame = errors.New("the frame is shorter than an Ethernet header")
	errNoPipeline = errors.New("no pipeline is loaded")
)

// Config is the arguments of New.
type Config struct {
	// Conntrack tracks connections; required.
	Conntrack *conntrack.Table
	// Clock is a monotonic clock in nanoseconds; required.
	Clock func() int64
	// Workers is how many goroutines move packets, 1 when 0.
	Workers int
	// SelectSeed seeds the choice of a select group's bucket. Two switches with the same seed and
	// groups send each connection to the same bucket. 0 draws a seed.
	SelectSeed uint64
	// Cache is the number of entries, one per direction of a connection, in each worker's cache:
	// 262,144 when 0, no cache when negative.
	Cache int
	// Megaflows is how many megaflows each worker remembers; none when negative. When 0 it is
	// 65,536, or none if Cache is negative.
	Megaflows int
	// TimeEvery is N if each worker times one walk of N, table by table: 1021 when 0.
	TimeEvery int
	// KeepAwake keeps idle processors awake while ports exchange packets through a worker
	// (ports.Awake). New fails if the kernel cannot do that.
	KeepAwake bool
	// OpenAwake opens the keep-awake request of one worker; ports.OpenAwake when nil.
	OpenAwake func() (*ports.Awake, error)
	// PacketIn gets every packet-in, one at a time; nil discards them.
	PacketIn func(*telemetry.PacketIn)
	// FlowRemoved receives each entry with send_flow_rem whose timeout has passed, one call at a
	// time. It may be nil.
	FlowRemoved func(*telemetry.FlowRemoved)
	// Answers says whether PacketIn answers a packet, so that it needs no controller. It gets the
	// userdata of the action and the name of the entry's table. Workers call it. If nil, all
	// packet-ins need a controller.
	Answers func(userdata []byte, table string) bool
	// Offload lets the kernel forward packets of established connections between ports that
	// support it (ports.Info.OffloadLink); nil for none. It needs the cache. Until the switch is
	// closed, only the switch may use it.
	Offload ports.Offload
	// OffloadAfter is how many packets of a connection's direction are replayed before the
	// connection's first offload entry: 32 when 0.
	OffloadAfter int
}

// Switch is one pipeline with its ports.
type Switch struct {
	conntrack *conntrack.Table
	clock     func() int64
	onPacket  func(*telemetry.PacketIn)
	onRemoved func(*telemetry.FlowRemoved)
	answers   func(userdata []byte, table string) bool
	hashSeed  uint64

	program   atomic.Pointer[program.Program]
	ports     atomic.Pointer[portSet]
	workers   []*worker
	outside   *worker // for packet-outs, traces and Poll; used under its busy lock
	fdb       l2.MACTable
	fragments *reassembly.Fragments[paused]
	// fragmentDrops is the fragments whose datagrams did not complete.
	fragmentDrops  *telemetry.DropRing
	reading        sync.Mutex               // held while reading rings of dropped packets, or packet counters
	crediting      sync.Mutex               // held while crediting counts of caches and offload to entries
	own            account                  // packets that the switch makes
	gone           telemetry.PacketCounters // of removed ports that hold no packet
	past           []*account               // … that may hold fragments; both under mu
	packetIns      chan *telemetry.PacketIn
	seconds        chan struct{}
	controllerAway atomic.Bool
	tellsTTL       atomic.Bool
	learnings      atomic.Uint64           // changes of learned entries, counted from 1
	learners       atomic.Uint64           // tables that learned their first entry ever
	awoken         atomic.Uint64           // times that a table went from no learned entry to one
	lives          atomic.Pointer[liveSet] // live traces; nil for none
	armed          uint64                  // how many live sets there were; under mu
	offload        *offload.Table          // nil without offload
	offloadAfter   uint16                  // Config.OffloadAfter

	mu        sync.Mutex // one change at a time
	entries   program.Compiler
	window    int64 // when the window of the ports' shares began, nanoseconds
	trial     sched.Trial
	tried     *switchPort // the port moved on trial
	triedFrom int         // … and its worker before the move
	pauses    int         // pauses of PauseReceiving that have not ended
}

// portSet is the ports of a switch. It is immutable.
type portSet struct {
	byNumber map[uint32]*switchPort
	low      []*switchPort     // those below lowPorts, by number
	list     []*switchPort     // by number
	owners   map[uint64]uint32 // port number of each configured MAC address (security.go)
}

// lowPorts is the limit below which port numbers need no map.
const lowPorts = 4096

// port is the port with a number, nil if there is none.
func (s *portSet) port(no uint32) *switchPort {
	if int(no) < len(s.low) {
		return s.low[no]
	}
	return s.byNumber[no]
}

// New makes a switch without ports and without a pipeline. It drops every packet until Apply sets
// a pipeline.
func New(c Config) (*Switch, error) {
	s := &Switch{
		conntrack: c.Conntrack, clock: c.Clock, onPacket: c.PacketIn, onRemoved: c.FlowRemoved, answers: c.Answers,
		hashSeed: c.SelectSeed, seconds: make(chan struct{}, 1), packetIns: make(chan *telemetry.PacketIn, packetInQueue),
		window: c.Clock(),
	}
	if s.onPacket == nil {
		s.onPacket = func(*telemetry.PacketIn) {}
	}
	if s.onRemoved == nil {
		s.onRemoved = func(*telemetry.FlowRemoved) {}
	}
	for s.hashSeed == 0 {
		s.hashSeed = rand.Uint64()
	}
	s.learnings.Store(1)
	s.ports.Store(&portSet{byNumber: map[uint32]*switchPort{}})
	for range max(1, c.Workers) {
		w := newWorker(s)
		w.no = len(s.workers)
		w.timer.every = cmp.Or(c.TimeEvery, timeEvery)
		if c.Cache >= 0 {
			w.cache = newCache(cmp.Or(c.Cache, defaultCache))
		}
		if c.Megaflows == 0 && c.Cache >= 0 {
			c.Megaflows = flowcache.DefaultMegaflows
		}
		if c.Megaflows > 0 {
			w.megaflows = flowcache.NewMegaflows(c.Megaflows, &w.scratch)
		}
		poller, err := ports.NewPoller()
		if err != nil {
			return nil, fmt.Errorf("worker: %w", err)
		}
		w.poller = poller
		s.workers = append(s.workers, w)
		if c.KeepAwake {
			open := c.OpenAwake
			if open == nil {
				open = ports.OpenAwake
			}
			request, err := open()
			if err != nil {
				return nil, fmt.Errorf("worker: %w", err)
			}
			w.hold.Awakener = request
		}
	}
	s.outside = newWorker(s)
	s.outside.no = len(s.workers)
	if c.Offload != nil && c.Cache >= 0 {
		s.offloadAfter = uint16(cmp.Or(c.OffloadAfter, defaultOffloadAfter))
		s.offload = offload.New(offload.Switch{
			Conntrack: s.conntrack, Clock: s.clock, State: s.offloadState, Learnings: s.learnings.Load,
			Traced: func(key *ports.OffloadKey, inPort uint32) bool { return s.lives.Load().wantsKey(key, inPort) },
		}, c.Offload)
	}
	s.fragmentDrops = telemetry.NewDropRing()
	s.fragments = reassembly.NewFragments(s.dropFragment)
	return s, nil
}

// Apply changes the pipeline by a bundle, whole or not at all. The error names every refused
// entry (InvalidEntryError).
func (s *Switch) Apply(b *flow.Bundle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apply(b)
}

// apply is Apply under the caller's s.mu.
func (s *Switch) apply(b *flow.Bundle) error {
	before := s.current()
	after, err := before.Build(b, &s.entries, s.clock())
	if after.FirstLearner {
		s.learners.Add(1)
	}
	if err != nil {
		return err
	}
	s.program.Store(after)
	s.forgetLearned(before, after)
	s.offload.Withdraw()
	return nil
}

var noProgram program.Program

// current is the program that packets walk, or an empty one.
func (s *Switch) current() *program.Program { return cmp.Or(s.program.Load(), &noProgram) }

// everyWorker is the workers, and the one for packets from outside.
func (s *Switch) everyWorker() []*worker { return append(slices.Clone(s.workers), s.outside) }

// addLearned installs a learned entry.
func (s *Switch) addLearned(t *lookup.Table, ne *lookup.Entry, limit uint32) {
	if !t.Live.MayLearn.Swap(true) {
		s.learners.Add(1)
		s.offload.Withdraw()
	}
	if t.Live.Learned.Add(ne, limit) {
		s.awoken.Add(1) // after lookups see the entry, so that a megaflow that missed it began before this change
	}
	s.countLearning()
}

// countLearning counts a change of learned entries. The caller has made it visible to lookups.
func (s *Switch) countLearning() {
	s.learnings.Add(1)
	s.offload.Learned()
}

// AddPort adds a port to the switch under a number, without port security.
func (s *Switch) AddPort(no uint32, p ports.Port) error {
	return s.AddSecuredPort(no, p, l2.PortSecurity{})
}

// AddSecuredPort adds a port to the switch under a number. Its security holds from its first
// packet on.
func (s *Switch) AddSecuredPort(no uint32, p ports.Port, security l2.PortSecurity) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.ports.Load()
	if have := old.byNumber[no]; have != nil {
		return fmt.Errorf("port %d is already there: %s", no, have.port.Name())
	}
	if err := security.Check(); err != nil {
		return fmt.Errorf("port %d: %w", no, err)
	}
	info := p.Info()
	sp := &switchPort{no: no, port: p, tunnel: info.Tunnel, to: info.TunnelTo, aside: info.Aside, carries: info.Carries, kernel: offload.Port{No: no, Link: info.OffloadLink, MTU: info.MTU}}
	if t, is := p.(ports.OffloadTunnel); is && info.Tunnel && info.OffloadLink != 0 {
		sp.kernel.Tunnel = t
		t.WhenChanged(s.offload.Withdraw)
	}
	if st, is := p.(ports.OffloadStack); is && info.OffloadLink != 0 {
		sp.kernel.Stack = st
	}
	sp.guard.Store(l2.GuardOf(&security))
	sp.config.Store(&telemetry.PortConfig{})
	sp.share.Assign(s.idlest(old.list))
	s.publishPorts(append(slices.Clone(old.list), sp))
	s.forgetForeign()
	return nil
}

// RemovePort removes a port from the switch. It closes the port once no worker uses it.
func (s *Switch) RemovePort(no uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp, err := s.portByNumber(no)
	if err != nil {
		return err
	}
	list := slices.Clone(s.ports.Load().list)
	s.publishPorts(slices.DeleteFunc(list, func(p *switchPort) bool { return p == sp }))
	for _, w := range s.everyWorker() {
		w.letGo()
	}
	s.outside.finish(sp)
	s.fdb.Remove(func(l *l2.Station) bool { return l.Port.Load() == no })
	s.past = append(s.past, &sp.account)
	return sp.port.Close()
}

// portByNumber is a port of the switch, or an error that names the number.
func (s *Switch) portByNumber(no uint32) (*switchPort, error) {
	if p := s.ports.Load().byNumber[no]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("there is no port %d", no)
}

// publishPorts publishes a list of ports as the switch's, and assigns them to the workers.
func (s *Switch) publishPorts(list []*switchPort) {
	slices.SortFunc(list, func(a, b *switchPort) int { return cmp.Compare(a.no, b.no) })
	set := &portSet{byNumber: make(map[uint32]*switchPort, len(list)), list: list}
	for _, p := range list {
		set.byNumber[p.no] = p
		set.own(p)
		if p.no < lowPorts {
			set.low = append(set.low, make([]*switchPort, int(p.no)+1-len(set.low))...)
			set.low[p.no] = p
		}
	}
	s.fdb.Ports.Store(int32(len(list)))
	s.ports.Store(set)
	s.offload.Withdraw()
	s.assignPorts()
}

// received are the ports that a worker receives from: none while receiving is paused.
func (s *Switch) received(worker int) (mine []*switchPort) {
	if s.pauses > 0 {
		return nil
	}
	for _, p := range s.ports.Load().list {
		if p.share.Worker() == worker {
			mine = append(mine, p)
		}
	}
	return mine
}

// Run moves packets until ctx ends, then returns once every worker has stopped.
// The ports stay open.
func (s *Switch) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(s.workers))
	var wg sync.WaitGroup
	for i, w := range s.workers {
		wg.Go(func() { errs[i] = w.runWorker(ctx); cancel() })
	}
	wg.Go(func() { s.runUpkeep(ctx) })
	if s.offload != nil {
		wg.Go(func() { s.offload.Run(ctx) })
	}
	<-ctx.Done()
	for _, w := range s.workers {
		w.poller.Wake()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// runUpkeep hands packet-ins to the subscriber. Every second it also calls upkeep.
func (s *Switch) runUpkeep(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for seconds := 0; ; {
		select {
		case <-ctx.Done():
			return
		case pi := <-s.packetIns:
			s.onPacket(pi)
		case <-tick.C:
			s.upkeep(seconds)
			seconds++
		}
	}
}

// upkeep removes expired state and balances the ports over the workers. Seconds count from 0.
func (s *Switch) upkeep(second int) {
	s.Expire()
	if second%callEvery == 0 {
		for _, w := range s.workers {
			w.call()
		}
	}
	s.balance()
	select {
	case s.seconds <- struct{}{}:
	default:
	}
}

// Seconds has a value after each second's upkeep, for one goroutine that needs no ticker of its own.
func (s *Switch) Seconds() <-chan struct{} { return s.seconds }

// Expire removes flow entries, learned addresses, connections and waiting fragments whose
// timeouts have passed. Run calls it every second. A caller that turns the clock calls it, too.
func (s *Switch) Expire() {
	now := s.clock()
	s.offload.Tend(now)
	s.conntrack.Sweep(now)
	s.reading.Lock()
	s.fragments.Expire(now)
	s.reading.Unlock()
	s.fdb.Expire(now)
	s.creditNow()
	for _, gone := range s.expireEntries(now) {
		s.onRemoved(gone)
	}
}

// Poll moves the ports' frames on the caller's goroutine until no more come, and hands packet-ins
// out. It is for switches without Run: tests, replays, the dut command.
func (s *Switch) Poll() {
	for {
		for _, w := range s.workers {
			w.drain()
		}
		if s.offload != nil {
			s.offload.Poll()
		}
		select {
		case pi := <-s.packetIns:
			s.onPacket(pi)
		default:
			return
		}
	}
}

// BringBack ends the kernel's forwarding. When it returns, every packet comes to the ports, and
// connections and counters include all packets until then. While Run continues, the kernel may
// get connections again.
func (s *Switch) BringBack() { s.offload.Close() }

// Close closes the ports and the workers' descriptors. Run must have returned.
func (s *Switch) Close() error {
	s.offload.Close()
	var errs []error
	for _, p := range s.ports.Load().list {
		errs = append(errs, s.RemovePort(p.no))
	}
	for _, w := range s.workers {
		errs = append(errs, w.poller.Close(), w.hold.Close())
	}
	return errors.Join(errs...)
}

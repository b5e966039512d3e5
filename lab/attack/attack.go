// Package attack plays attacks of one pod in a lab while other pods work. It reports for
// each what was sent, what arrived, how the drops are named, and what the other pods saw.
//
//	attack.go     the run: a lab, then one attack after another
//	attacks.go    the table of attacks, with what is expected of each
//	stage.go      the lab as an attack sees it: pods, Nodes, sockets, watchers
//	attackpolicies.go the cluster's objects
//	bystanders.go the other pods' traffic, in windows
//	pings.go      echo requests at a steady pace
//	streams.go    TCP connections and streams
//	dropnames.go  the drops that the agents report
//	frames.go     frames between pods, and forged parts of them
//	tunnel.go     tunnel packets from a pod
//	hostilepeer.go packets of offloaded connections, with one thing changed
//	links.go      MACs and ARP
//	nd.go         neighbour discovery and IPv6 multicast
//	gso.go        frames that ask to be cut into very many segments
//	forgedheaders.go source routes, extension headers, tags, TTL 0
//	floods.go     allowed packets, too many of them
//	local.go      an echo server; half requests to the page and the API
//	attackreport.go the table
//
// Nothing is simulated. The attacker's frames leave by an AF_PACKET socket on its eth0, as
// from a pod with CAP_NET_RAW. Its tunnel packets leave by a UDP socket of an unprivileged
// user. Arrivals are counted on the other pods' interfaces.
package attack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/lab"
)

// Options of Run. Each zero value has a meaning.
type Options struct {
	// Duration is how long each attack is observed, and how long a flood lasts; 0 is 2 s. A
	// flood also ends after mostFrames.
	Duration time.Duration
	// Only is a part of the names of the attacks to play; "" is all.
	Only string
	// Family is "IPv4" or "IPv6"; "" is both, one after the other.
	Family string
	// Lab is the lab to make. Run sets its objects, connection table and page.
	Lab      lab.Options
	Progress io.Writer // a line per step; nil for none
}

// tableSize is the number of connections of each Node's table: few, so that an attack can
// fill it.
const tableSize = 8192

// mostGrowth is how much an agent's memory may grow during one attack, in bytes.
const mostGrowth = 64 << 20

// families are the two address families, by name.
var families = []string{"IPv4", "IPv6"}

// Names are the attacks, in order.
func Names() []string {
	var names []string
	for _, a := range attacks {
		names = append(names, a.name)
	}
	return names
}

// Known says whether an attack has only in its name.
func Known(only string) bool { return slices.ContainsFunc(attacks, (&Options{Only: only}).takes) }

// check completes the options. The error is about the first invalid one.
func (o *Options) check() error {
	o.Duration = cmp.Or(o.Duration, 2*time.Second)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	switch {
	case o.Duration < 0:
		return fmt.Errorf("the duration is %v; it must not be negative", o.Duration)
	case o.Family != "" && !slices.Contains(families, o.Family):
		return fmt.Errorf("the family is %q; it must be one of %s", o.Family, strings.Join(families, ", "))
	case !Known(o.Only):
		return fmt.Errorf("no attack has %q in its name; there are: %s", o.Only, strings.Join(Names(), "; "))
	}
	return nil
}

// takes says whether an attack is to be played.
func (o *Options) takes(a attack) bool { return strings.Contains(a.name, o.Only) }

// Run makes a lab of two Nodes, plays the attacks in it, and removes it. The error says why
// there is no report.
func Run(ctx context.Context, o Options) (r *Report, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "antrail-attack-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := writeObjects(dir); err != nil {
		return nil, err
	}
	o.Lab.Nodes, o.Lab.Transient, o.Lab.Progress, o.Lab.Manifests = 2, true, o.Progress, dir
	o.Lab.Conntrack, o.Lab.Page = config.Conntrack{Max: tableSize}, config.Page{Address: pageAddress}
	if o.Lab.StateDir == "" {
		o.Lab.StateDir = lab.StateDir()
	}
	if err := lab.Sweep(o.Lab.StateDir); err != nil {
		return nil, err
	}
	l, err := lab.Up(ctx, o.Lab)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	r = &Report{Tunnel: l.Topology.Tunnel.String(), Duration: o.Duration.String()}
	for _, family := range families {
		if o.Family == "" || o.Family == family {
			if err := o.playFamily(ctx, l, family, r); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// playFamily plays the attacks of one family.
func (o *Options) playFamily(ctx context.Context, l *lab.Lab, family string, r *Report) error {
	s := &stage{lab: l, v6: family == "IPv6", length: o.Duration}
	if err := s.openSocket(attacker); err != nil {
		return err
	}
	defer s.socket.Close()
	others, err := startOthers(ctx, s)
	if err != nil {
		return err
	}
	defer others.stop()
	time.Sleep(settle) // by then the neighbours are known
	for i, a := range slices.Concat([]attack{quiet}, attacks) {
		if i > 0 && !o.takes(a) || a.only != "" && a.only != family {
			continue
		}
		if s.marker = a.marker; s.marker == nil {
			s.marker = fmt.Appendf(nil, "atk%s%03d", family[3:], i)
		}
		expected := a.onDriver(l.State.Driver)
		row, err := playAgain(func() (Row, error) {
			began := time.Now()
			row, err := expected.run(ctx, s, others)
			row.took = time.Since(began)
			return row, err
		})
		if ctx.Err() != nil {
			return fmt.Errorf("stopped in the attack %q by %s: %w", a.name, family, ctx.Err())
		}
		if err != nil {
			return fmt.Errorf("%s by %s: %w", a.name, family, err)
		}
		r.Rows = append(r.Rows, row)
		row.progress(o.Progress)
	}
	return nil
}

// mostPlays is the most plays of an attack if the others lose too many pings. Other work on
// the machine can hold up a Node for as long as a flood lasts. An attack that cuts the
// others off does so each time.
const mostPlays = 3

// playAgain plays an attack, and again if lost pings are its only faults. The row is the
// last play's.
func playAgain(play func() (Row, error)) (row Row, err error) {
	for n := 1; ; n++ {
		row, err = play()
		row.Plays = n
		if err != nil || n == mostPlays || !row.onlyPings() {
			return row, err
		}
	}
}

// quiet plays nothing: it shows what the others see without an attack.
var quiet = attack{name: "nothing", play: func(context.Context, *stage) (int, error) { return 0, nil }, arrives: anything}

// run plays one attack and checks its effects.
func (a *attack) run(ctx context.Context, s *stage, o *others) (Row, error) {
	row := Row{Attack: a.name, Family: s.family(), MemoryBefore: memory(s.lab)}
	if err := s.drain(); err != nil {
		return row, err
	}
	from, err := s.losses(ctx)
	if err != nil {
		return row, err
	}
	var watchers []*watcher
	if a.arrives != anything {
		if watchers, err = s.watchAll(); err != nil {
			return row, err
		}
	}
	o.beginWindow()
	ends := time.Now().Add(s.length)
	row.Sent, err = a.play(ctx, s)
	if err == nil {
		time.Sleep(max(settle, time.Until(ends)))
		if a.check != nil {
			err = a.check(ctx, s)
		}
	}
	var broken error
	row.Others, broken = o.end()
	row.MemoryAfter = memory(s.lab)
	row.count(a, countAll(watchers))
	row.fault(broken)
	if err := row.damaged(err); err != nil {
		return row, err
	}
	if row.Sent > 0 {
		if row.Named, err = s.named(ctx, from, a); err != nil {
			return row, err
		}
	}
	row.check(a)
	if a.after != nil {
		err = a.after(ctx, s)
	}
	return row, err
}

// memory is the resident bytes of the agent on the attacker's Node; 0 if it has ended.
func memory(l *lab.Lab) int {
	for _, a := range l.State.Agents {
		if a.Node != nodeA {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", a.Process.PID))
		if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
			pages, _ := strconv.Atoi(fields[1]) // the kernel writes numbers
			return pages * os.Getpagesize()
		}
	}
	return 0
}

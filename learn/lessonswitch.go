package learn

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/tables/programs"
)

// tunnelName is the tunnel port of each Node of the sample cluster.
const tunnelName = "antrea-tun0"

// node is a Node's program.
type node struct {
	name    string
	program *flow.Program
	objects *control.Reconciler // nil without a cluster
	// outer are the Node's tunnel addresses: its own, and those of its Egresses.
	outer []netip.Addr
}

// nodes makes the entries of all of a lesson's Nodes from the objects. On the first Node,
// the learner's tables have the learner's entries.
func (l *Lesson) nodes(f *Files) ([]*node, error) {
	if l.Program != "" {
		return l.sample(f)
	}
	if len(l.Nodes) == 0 {
		return l.alone(f)
	}
	cluster, err := l.objects(f)
	if err != nil {
		return nil, err
	}
	var all []*node
	for i, name := range l.Nodes {
		n := &node{name: name}
		if n.program, n.objects, err = control.Offline(cluster, name); err != nil {
			return nil, err
		}
		n.outer = slices.Clone(cluster.NodeConfig(name).TransportIPs)
		for _, e := range cluster.Egresses {
			if e.Node == name && e.Addr.IsValid() {
				n.outer = append(n.outer, e.Addr)
			}
		}
		if err := n.waiting(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.path(objectsFile), err)
		}
		if i == 0 {
			if err := l.merge(n.program, f); err != nil {
				return nil, err
			}
		}
		all = append(all, n)
	}
	return all, nil
}

// sample is a lesson of a program: its sample Node, with the learner's tables.
func (l *Lesson) sample(f *Files) ([]*node, error) {
	p, err := programs.Named(l.Program)
	if err != nil {
		return nil, err
	}
	n := &node{name: "the Node"}
	if n.program, _, err = p.Flow(p.Sample()); err != nil {
		return nil, err
	}
	return []*node{n}, l.merge(n.program, f)
}

// alone is a lesson without a cluster: it has only the entries of the learner's file.
func (l *Lesson) alone(f *Files) ([]*node, error) {
	names := flow.NewNames()
	for i, port := range l.Ports {
		names.SetPort(uint32(i+1), port)
	}
	p, err := parse.Program(parse.Sources{
		Flows: parse.Text(f.path(entriesFile), f.Text[entriesFile]), Groups: parse.Text(f.path(groupsFile), f.Text[groupsFile]), Names: names,
	})
	if err != nil {
		return nil, err
	}
	if err := strangers(p.Names); err != nil {
		return nil, fmt.Errorf("%s: %w", f.path(entriesFile), err)
	}
	return []*node{{name: "the switch", program: p}}, nil
}

// strangers is an error if entries name an unknown port. The parser numbers unknown ports
// from 32768 up.
func strangers(n *flow.Names) error {
	if name := n.Port(32768); name != "" {
		return fmt.Errorf("there is no port %q here", name)
	}
	return nil
}

// objects is the cluster: the lesson's part of the sample, and the learner's objects, which
// replace those of the same name.
func (l *Lesson) objects(f *Files) (*cluster.Cluster, error) {
	objects := store.NewStore(store.DeriveEndpoints)
	own := manifest.Decode(f.path(objectsFile), []byte(f.Text[objectsFile]))
	if err := problems(own.Problems); err != nil {
		return nil, err
	}
	changes := []store.Change{{Source: f.path(objectsFile), Set: own.Objects}}
	for _, name := range l.Cluster {
		text, err := examples.FS.ReadFile("web-app/" + name)
		if err != nil {
			return nil, err
		}
		d := manifest.Decode(name, text)
		d.Objects = slices.DeleteFunc(d.Objects, func(o cluster.Object) bool {
			return slices.ContainsFunc(own.Objects, func(x cluster.Object) bool { return x.Metadata().Key == o.Metadata().Key })
		})
		changes = append(changes, store.Change{Source: name, Set: d.Objects})
	}
	objects.Apply(changes...)
	return objects.Snapshot(), problems(objects.Problems())
}

// problems are the problems with objects, as one error.
func problems(all []manifest.Problem) error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// waiting is an error that names the refused objects.
func (n *node) waiting() error {
	var errs []error
	for _, s := range n.objects.Statuses() {
		if s.State == ledger.Refused {
			errs = append(errs, fmt.Errorf("%s: %s", s.Object, s.Reason))
		}
	}
	return errors.Join(errs...)
}

// merge adds the learner's entries and groups to a Node's program.
func (l *Lesson) merge(p *flow.Program, f *Files) error {
	own, err := parse.Program(parse.Sources{
		Flows: parse.Text(f.path(entriesFile), f.Text[entriesFile]), Groups: parse.Text(f.path(groupsFile), f.Text[groupsFile]), Names: p.Names,
	})
	if err != nil {
		return err
	}
	if err := strangers(own.Names); err != nil {
		return fmt.Errorf("%s: %w", f.path(entriesFile), err)
	}
	p.Entries = slices.DeleteFunc(p.Entries, func(e *flow.Entry) bool { return slices.Contains(l.Tables, p.Names.Table(e.Table)) })
	if p.Entries, err = join(p.Entries, own.Entries, func(e *flow.Entry) string { return identity(e, p.Names) }); err != nil {
		return fmt.Errorf("%s: %w", f.path(entriesFile), err)
	}
	p.Groups, err = join(p.Groups, own.Groups, func(g *flow.Group) uint32 { return g.ID })
	return err
}

// join is both lists. If a key is in both, own's element counts. A key that own has twice
// is an error.
func join[T any, K comparable](have, own []*T, key func(*T) K) ([]*T, error) {
	seen := map[K]bool{}
	for _, o := range own {
		k := key(o)
		if seen[k] {
			return nil, fmt.Errorf("there are two entries %v: a table has one for each priority and match", k)
		}
		seen[k] = true
	}
	have = slices.DeleteFunc(have, func(x *T) bool { return seen[key(x)] })
	return append(have, own...), nil
}

// identity is an entry's table, priority and match, as a dump begins.
func identity(e *flow.Entry, n *flow.Names) string {
	text, _, _ := strings.Cut(line(&flow.Entry{Table: e.Table, Priority: e.Priority, Match: e.Match}, n), "actions=")
	return strings.TrimSpace(text)
}

// line is an entry as the lessons show it: a line of a dump without its cookie.
func line(e *flow.Entry, n *flow.Names) string {
	bare := *e
	bare.Cookie = 0
	return strings.TrimSpace(bare.Text(flow.Format{Names: n}))
}

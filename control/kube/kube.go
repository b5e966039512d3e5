// Package kube is the Kubernetes API as a source of objects: what a directory
// of manifests is to package control, an API server is here. Each resource has
// a watch of its own; all of them fill one store:
//
//	list, watch → decode (control.Published) → inbox → pending → store.Apply
//	 client.go      objectinbox.go                     batch.go
//
//	kube.go          Source: what is asked of it from outside
//	resources.go     what is watched, and with which selectors
//	client.go        connections: protobuf for built-in types, JSON for Antrea's
//	watch.go         one resource: list, watch, try again
//	objectinbox.go   what a watch says → what differs from what it said before
//	batch.go         changes that wait, and the first of them, which is everything
//	crds.go          Antrea's kinds: there, or waited for
//	traceflow.go     the status of a Traceflow is written
//	unenforced.go    kinds of policies that antrail does not enforce: refused
//	status.go        how each watch stands
//	events.go        refused objects are told on the object
//	nodereport.go    how the Node's policies stand is told in its AntreaAgentInfo
//	election.go      one agent of the cluster sums up what all tell
//	reportstore.go   what it has of the others
//	policystatuswriter.go          and writes the status of policies
//	policystatus.go  which is this
//
// An object is decoded when it arrives, and nothing else of it is kept: there is
// no cache of published types beside the store (docs/decisions/020).
//
// The first state of all resources goes into the store in one step, so that no
// policy is missing in between. While the API is away the store stays as it is;
// when it is back, each watch goes on where it was, or lists again and tells the
// difference. An object that is refused stays as it was when it was last good.
//
// Goroutines: runWatch for each resource, runDiscovery, runUnenforced, runApply, runEvents; RunStatus,
// runElection, runStatusWriter and runReportWatch.
package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/control/store"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SourceName is Source.File of all objects that come from an API server.
const SourceName = "kubernetes"

// Config says which API server is watched, and for whom.
type Config struct {
	// Kubeconfig is a file; "" takes the service account of the Pod that the
	// process runs in.
	Kubeconfig string
	// Node is the Node whose Pods are watched apart from the others'.
	Node string
	// Namespace is that of the Lease of who sums up; kube-system when not given.
	Namespace string
	Log       *slog.Logger
}

// Source fills a store from an API server. Its methods may be called from any
// goroutine.
type Source struct {
	config Config
	store  *store.Store
	api    *connections

	mu      sync.Mutex
	watches []*watch
	// absent are Antrea's kinds that the API server does not have.
	absent map[cluster.Kind]bool
	// discovered: which of Antrea's kinds there are was found out once.
	discovered bool
	discovery  error // why not, or not any more
	pending    pending
	wake       chan struct{}   // something is pending
	synced     chan struct{}   // closed when the store has the first state
	told       map[string]bool // problems that were logged and are still there
	refused    chan refusedEvent
	longest    time.Duration // between two looks for Antrea's kinds
	pace       pace
	policyTurn uint64 // counts what watches tell of policies
}

// New makes a Source; it does not connect yet. The error is for a configuration
// that cannot be used.
func New(c Config, store *store.Store) (*Source, error) {
	c.Namespace = cmp.Or(c.Namespace, metav1.NamespaceSystem)
	api, err := connect(c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	s := &Source{
		config: c, store: store, api: api, absent: map[cluster.Kind]bool{}, pending: newPending(),
		wake: make(chan struct{}, 1), synced: make(chan struct{}), told: map[string]bool{},
		refused: make(chan refusedEvent, maxWaiting), longest: longWait,
		pace: usualPace,
	}
	for _, r := range builtin(c.Node) {
		s.watches = append(s.watches, newWatch(s, r))
	}
	return s, nil
}

// String names the API server.
func (s *Source) String() string { return s.api.host }

// Run watches until ctx ends. When it returns, nothing goes into the store any
// more.
func (s *Source) Run(ctx context.Context) {
	var wg sync.WaitGroup
	s.mu.Lock()
	first := slices.Clone(s.watches)
	s.mu.Unlock()
	for _, w := range first {
		wg.Go(func() { w.runWatch(ctx) })
	}
	wg.Go(func() { s.runDiscovery(ctx, &wg) })
	wg.Go(func() { s.runUnenforced(ctx, &wg) })
	wg.Go(func() { s.runEvents(ctx) })
	s.runApply(ctx)
	wg.Wait()
}

// Synced is closed when the store has the first state of all resources.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// Missing says what the first state still lacks; nil when Synced is closed.
func (s *Source) Missing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.missing()
}

func (s *Source) missing() error {
	for _, w := range s.watches {
		if !w.listed && w.fault != nil && !w.unenforced {
			return fmt.Errorf("%s: %w", w.name(), w.fault)
		}
	}
	if !s.discovered && s.discovery != nil {
		return fmt.Errorf("which kinds the API server has: %w", s.discovery)
	}
	for _, w := range s.watches {
		if !w.listed && !w.unenforced {
			return fmt.Errorf("%s: not read yet", w.name())
		}
	}
	if !s.discovered {
		return errors.New("which kinds the API server has is not known yet")
	}
	return nil
}

// Problems are the objects of the API that are not in force, by key: those that
// were refused, and those that contradict others.
func (s *Source) Problems() []manifest.Problem {
	s.mu.Lock()
	var all []manifest.Problem
	for _, w := range s.watches {
		for _, problems := range w.refused {
			all = append(all, problems...)
		}
	}
	s.mu.Unlock()
	slices.SortStableFunc(all, func(a, b manifest.Problem) int {
		return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Reason, b.Reason))
	})
	return append(all, s.store.Problems()...)
}

// refusedEdits are the objects of the API that stay as they were when they were last
// good.
func (s *Source) refusedEdits() store.RefusedEdits {
	s.mu.Lock()
	defer s.mu.Unlock()
	edits := store.RefusedEdits{}
	for _, w := range s.watches {
		for k, problems := range w.refused {
			if w.held[k].object != nil && len(problems) > 0 {
				edits[k] = problems[0].EditText()
			}
		}
	}
	return edits
}

// Node asks for one Node.
func (s *Source) Node(ctx context.Context, name string) (*cluster.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	in, err := s.api.node(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	p := manifest.Published{APIVersion: "v1", Kind: "Node", Object: in}
	obj, problems := p.Decode(SourceName)
	if len(problems) > 0 {
		return nil, problems[0]
	}
	return obj.(*cluster.Node), nil
}

// ServiceCIDRs are the ranges of ClusterIPs that the API server has, in order.
func (s *Source) ServiceCIDRs(ctx context.Context) ([]netip.Prefix, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var list networkingv1.ServiceCIDRList
	if err := s.api.getJSON(ctx, "/apis/networking.k8s.io/v1/servicecidrs", &list); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	var all []netip.Prefix
	for _, item := range list.Items {
		for _, text := range item.Spec.CIDRs {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("kubernetes: ServiceCIDR/%s: %w", item.Name, err)
			}
			all = append(all, p)
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return all, nil
}

// askTime bounds one question that is not a watch.
const askTime = 10 * time.Second

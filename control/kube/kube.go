// Package kube is the Kubernetes API as a source of objects. For package store, an API server is
// a source like a directory of manifests. Each resource has its own watch; all watches fill one
// store:
//
//	list, watch → decode (manifest.Published) → inbox → pending → store.Apply
//	 client.go      objectinbox.go                     batch.go
//
//	kube.go          Source, for callers
//	resources.go     the resources to watch, and their selectors
//	client.go        connections: protobuf for built-in types, JSON for Antrea's
//	watch.go         one resource: list, watch, try again
//	objectinbox.go   differences between new and former objects of a watch
//	batch.go         changes that wait, and the first change, with all objects
//	crds.go          waiting for Antrea's kinds
//	traceflow.go     writing the status of a Traceflow
//	unenforced.go    refusing the kinds of policies that antrail does not enforce
//	status.go        the state of each watch
//	events.go        Events about refused objects
//	nodereport.go    the state of the Node's policies, in its AntreaAgentInfo
//	election.go      the choice of the agent that sums up the reports
//	reportstore.go   the reports of the other agents
//	policystatuswriter.go          writing the status of policies
//	policystatus.go  that status
//
// An object is decoded when it arrives, and its published form is dropped: there is no cache of
// published types beside the store (docs/decisions/020).
//
// The first state of all resources enters the store in one step, so that no policy is missing in
// between. While the API is away, the store stays as it is. When the API is back, each watch
// resumes, or lists again and applies the difference. A refused object keeps its last good state.
//
// Goroutines: runWatch for each resource, runDiscovery, runUnenforced, runApply, runEvents; RunStatus,
// runElection, runStatusWriter and runReportWatch.
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

// SourceName is the Source.File of all objects from an API server.
const SourceName = "kubernetes"

// Config names the API server and the Node.
type Config struct {
	// Kubeconfig is a file. If it is "", the service account of the process' Pod is used.
	Kubeconfig string
	// Node is this Node. Its Pods have a watch of their own.
	Node string
	// Namespace is that of the Lease for summing up; the default is kube-system.
	Namespace string
	Log       *slog.Logger
}

// Source fills a store from an API server. Any goroutine may call its methods.
type Source struct {
	config Config
	store  *store.Store
	api    *connections

	mu      sync.Mutex
	watches []*watch
	// absent are Antrea's kinds that the API server lacks.
	absent map[cluster.Kind]bool
	// discovered is true after the first successful discovery of Antrea's kinds.
	discovered bool
	discovery  error // of the last discovery
	pending    pending
	wake       chan struct{}   // something is pending
	synced     chan struct{}   // closed when the store has the first state
	told       map[string]bool // problems that were logged and still exist
	refused    chan refusedEvent
	longest    time.Duration // between two discoveries of Antrea's kinds
	pace       pace
	policyTurn uint64 // counts events of policies
}

// New makes a Source. It does not connect yet. It returns an error if the configuration cannot be
// used.
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

// Run watches until ctx ends. After its return, nothing more enters the store.
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

// Missing says what the first state still lacks; nil if Synced is closed.
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
		return errors.New("the kinds of the API server are not known yet")
	}
	return nil
}

// Problems returns the objects of the API that are not in force, by key: those that are refused,
// and those that contradict others.
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

// refusedEdits returns the objects of the API that keep their last good state.
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

// Node reads one Node.
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

// ServiceCIDRs returns the API server's ranges of ClusterIPs, in order.
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

// askTime is the timeout of a request that is not a watch.
const askTime = 10 * time.Second

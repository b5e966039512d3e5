package kube

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/store"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// The reports of the other agents, and the changes in the store of objects since the last pass.

// nodeReport is a decoded report.
type nodeReport struct {
	realised marks
	failed   map[mark]string
	at       time.Time // of arrival
	quiet    bool      // at is too long ago
}

// reportStore is the store that a Reflector fills with AntreaAgentInfos.
type reportStore struct {
	quiet time.Duration

	mu      sync.Mutex
	of      map[string]*nodeReport // by Node
	listed  bool
	touched bool
}

func newReportStore(quiet time.Duration) *reportStore {
	return &reportStore{quiet: quiet, of: map[string]*nodeReport{}}
}

// complete reports whether the reports of all Nodes were read.
func (s *reportStore) complete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// changed reports whether sums may have changed since the last call.
func (s *reportStore) changed(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.of {
		if quiet := now.Sub(r.at) > s.quiet; quiet != r.quiet {
			r.quiet, s.touched = quiet, true
		}
	}
	touched := s.touched
	s.touched = false
	return touched
}

// count counts the Nodes on which a policy is realised, and returns the failures of other Nodes.
func (s *reportStore) count(m mark, nodes []string) (current int, failed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range nodes {
		r := s.of[n]
		if r == nil || r.quiet {
			continue
		}
		if r.realised.has(m) {
			current++
		} else if why, is := r.failed[m]; is {
			failed = append(failed, fmt.Sprintf("%q:%q", n, why))
		}
	}
	return current, failed
}

// put stores a report.
func (s *reportStore) put(obj any) error {
	if info, ok := obj.(*unstructured.Unstructured); ok {
		r := readReport(info)
		s.mu.Lock()
		defer s.mu.Unlock()
		was := s.of[info.GetName()]
		s.touched = s.touched || was == nil || was.realised != r.realised || !maps.Equal(was.failed, r.failed)
		if was != nil {
			r.quiet = was.quiet // updated by changed
		}
		s.of[info.GetName()] = r
	}
	return nil
}

// Add implements cache.ReflectorStore.
func (s *reportStore) Add(obj any) error { return s.put(obj) }

// Update implements cache.ReflectorStore.
func (s *reportStore) Update(obj any) error { return s.put(obj) }

// Delete implements cache.ReflectorStore.
func (s *reportStore) Delete(obj any) error {
	if info, ok := obj.(*unstructured.Unstructured); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.of, info.GetName())
		s.touched = true
	}
	return nil
}

// Replace implements cache.ReflectorStore. It uses the times of heartbeats, so an agent that has
// long been silent does not count.
func (s *reportStore) Replace(list []any, _ string) error {
	all := map[string]*nodeReport{}
	for _, obj := range list {
		info, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		r := readReport(info)
		if beat := heartbeat(info); !beat.IsZero() && beat.Before(r.at) {
			r.at = beat
		}
		all[info.GetName()] = r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of, s.listed, s.touched = all, true, true
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *reportStore) Resync() error { return nil }

// readReport decodes the report of a Node. It ignores what it cannot read.
func readReport(info *unstructured.Unstructured) *nodeReport {
	r := &nodeReport{at: time.Now(), failed: map[mark]string{}}
	notes := info.GetAnnotations()
	if b, err := base64.RawStdEncoding.DecodeString(notes[realisedAnnotation]); err == nil {
		r.realised = marks(b[:len(b)-len(b)%len(mark{})])
	}
	var reasons map[string]string
	_ = json.Unmarshal([]byte(notes[failedAnnotation]), &reasons)
	for text, why := range reasons {
		var m mark
		if b, err := base64.RawStdEncoding.DecodeString(text); err == nil && len(b) == len(m) {
			copy(m[:], b)
			r.failed[m] = why
		}
	}
	return r
}

// heartbeat is the time of a report, by the clock of its Node.
func heartbeat(info *unstructured.Unstructured) time.Time {
	conditions, _, _ := unstructured.NestedSlice(info.Object, "agentConditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "AgentHealthy" {
			at, _ := time.Parse(time.RFC3339, fmt.Sprint(m["lastHeartbeatTime"]))
			return at
		}
	}
	return time.Time{}
}

// runReportWatch fills a store with the reports of all Nodes until ctx ends.
func (s *Source) runReportWatch(ctx context.Context, to cache.ReflectorStore) {
	r := resource{gvk: schema.GroupVersionKind{Group: antreaGroup, Version: agentInfos.Version, Kind: "AntreaAgentInfo"}, plural: agentInfos.Resource}
	runReflector(ctx, &r, s.api.listWatch(&r), to)
}

// storeNews collects the changes of the store.
type storeNews struct {
	mu   sync.Mutex
	now  *cluster.Cluster
	keys []cluster.Key
	all  bool // everything may have changed
	any  bool // something changed
}

// maxNews is the limit of changed keys; beyond it, everything may have changed.
const maxNews = 10000

// setFirstSnapshot sets the first snapshot, which is all new.
func (n *storeNews) setFirstSnapshot(c *cluster.Cluster) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.now == nil {
		n.now = c
	}
	n.all, n.any = true, true
}

// addUpdate records an update, as a follower of the store.
func (n *storeNews) addUpdate(u store.Update) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now, n.any = u.New, true
	if n.all = n.all || len(n.keys)+len(u.Changed) > maxNews; n.all {
		n.keys = nil
		return
	}
	n.keys = append(n.keys, u.Changed...)
}

// takeChanges returns the changes since its last call. keys are nil if everything may have changed.
func (n *storeNews) takeChanges() (c *cluster.Cluster, keys []cluster.Key, any bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, keys, any = n.now, n.keys, n.any
	if n.all {
		keys = nil
	}
	n.keys, n.all, n.any = nil, false, false
	return c, keys, any
}

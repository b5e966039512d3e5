package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/policy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
)

// Summing up counts for each policy the Nodes with its Pods, and those of them where its generation
// is in force. The Nodes follow from the objects that this agent has anyway (policy.Spans). The
// rest is in the reports of all Nodes (reportstore.go).
//
// After a change all sums are computed again. The next pass begins after twenty times the duration
// of the last one. A status is written only if it differs from that in the API server. Realizing is
// written only if it lasted a while, so a policy that is realised within seconds costs one write.

// Rates of writes. Every agent watches policies, so each write reaches every agent. writeFanOut
// bounds the messages of all writes together in a second.
const (
	writeFanOut = 5000
	leastWrites = 2 // a second
	mostWrites  = 50
	writeBurst  = 20
	sumShare    = 20 // pause between passes, in durations of a pass
)

// statusWriter is the state of the agent that sums up, beside the objects.
type statusWriter struct {
	*Source
	spans   *policy.Spans
	reports *reportStore
	news    storeNews
	rate    flowcontrol.RateLimiter

	turn   uint64                    // Source.policyTurn at the last pass
	tried  map[cluster.Key]try       // the last writes
	differ map[cluster.Key]time.Time // since when a status differs from the API server's
	last   cluster.Key               // last written; the next pass begins behind it
	unsure bool                      // the next pass has work even without a change
	next   time.Time                 // earliest time of the next pass
	warned bool                      // a failed write was logged
}

// try is the last write of a status. The next one waits for an event of the object, or for a while.
type try struct {
	version string
	at      time.Time
	failed  bool
}

// runStatusWriter sums up until ctx ends.
func (s *Source) runStatusWriter(ctx context.Context, of Reporter) {
	m := &statusWriter{Source: s, spans: of.Spans(), reports: newReportStore(s.pace.quiet), tried: map[cluster.Key]try{}, differ: map[cluster.Key]time.Time{}}
	if m.spans == nil {
		<-ctx.Done()
		return
	}
	now, end := s.store.Follow(m.news.addUpdate)
	defer end()
	m.news.setFirstSnapshot(now)
	nodes := max(1, len(now.Nodes))
	m.rate = flowcontrol.NewTokenBucketRateLimiter(float32(min(max(leastWrites, writeFanOut/nodes), mostWrites)), writeBurst)
	var wg sync.WaitGroup
	wg.Go(func() { s.runReportWatch(ctx, m.reports) })
	for ctx.Err() == nil {
		if t := time.Now(); m.reports.complete() && !t.Before(m.next) {
			m.pass(ctx, t)
		}
		pause(ctx, nil, s.pace.gather)
	}
	wg.Wait()
}

// pass sums up if something changed, and writes what the rate allows.
func (m *statusWriter) pass(ctx context.Context, now time.Time) {
	if !m.changed(now) {
		return
	}
	m.unsure = false
	policies := m.policies()
	there := make(map[cluster.Key]bool, len(policies))
	first := 0
	for i := range policies {
		there[policies[i].key] = true
		if policies[i].key.Compare(m.last) <= 0 {
			first = i + 1
		}
	}
	maps.DeleteFunc(m.tried, func(k cluster.Key, _ try) bool { return !there[k] })
	maps.DeleteFunc(m.differ, func(k cluster.Key, _ time.Time) bool { return !there[k] })
	var due []dueWrite
	for i := range policies {
		p := &policies[(first+i)%len(policies)]
		if want, is := m.due(p, now); is {
			due = append(due, dueWrite{p, want})
		}
	}
	m.next = now.Add((1 + sumShare) * time.Since(now))
	for i := range due {
		if ctx.Err() != nil || !m.rate.TryAccept() {
			break
		}
		m.write(ctx, &due[i])
	}
}

// changed reports whether there is something to sum up, and takes the changes.
func (m *statusWriter) changed(now time.Time) bool {
	changed := m.reports.changed(now) || m.unsure
	if c, keys, any := m.news.takeChanges(); any {
		m.spans.Update(c, keys)
		changed = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	changed = changed || m.turn != m.policyTurn
	m.turn = m.policyTurn
	return changed
}

// summedPolicy is a policy in its watch.
type summedPolicy struct {
	key     cluster.Key
	of      schema.GroupVersionResource
	refused string
	held
}

// policies returns all Antrea-native policies of the API server, by key.
func (m *statusWriter) policies() (all []summedPolicy) {
	contradict := map[cluster.Key]string{}
	for _, p := range m.store.Problems() {
		contradict[p.Key] = message(p)
	}
	m.mu.Lock()
	for _, w := range m.watches {
		if !summedKind(w.kind) {
			continue
		}
		for k, h := range w.held {
			p := summedPolicy{key: k, of: w.gvr(), refused: contradict[k], held: h}
			if problems := w.refused[k]; len(problems) > 0 {
				p.refused = message(problems[0])
			}
			all = append(all, p)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b summedPolicy) int { return a.key.Compare(b.key) })
	return all
}

// summedKind reports whether a kind has this status.
func summedKind(k cluster.Kind) bool {
	return k == cluster.KindClusterNetworkPolicy || k == cluster.KindAntreaNetworkPolicy
}

// dueWrite is a status to write.
type dueWrite struct {
	*summedPolicy
	status policyStatus
}

// due reports whether a policy's status differs and may be written now.
func (m *statusWriter) due(p *summedPolicy, now time.Time) (want policyStatus, is bool) {
	want, sure := m.status(p)
	if !sure {
		m.unsure = true
		return want, false
	}
	if want.same(p.policy.status) {
		delete(m.differ, p.key)
		return want, false
	}
	m.unsure = true
	since, differed := m.differ[p.key]
	if !differed {
		since, m.differ[p.key] = now, now
	}
	if want.Phase == phaseRealizing && now.Sub(since) < m.pace.least {
		return want, false
	}
	tried, wait := m.tried[p.key], m.pace.least
	switch {
	case tried.version != p.version:
	case tried.failed:
		wait = m.pace.absent
	default:
		wait *= 2
	}
	return want, now.Sub(tried.at) >= wait
}

// status computes a policy's status. It returns false while Spans lacks the policy's current state.
func (m *statusWriter) status(p *summedPolicy) (policyStatus, bool) {
	generation := p.policy.generation
	if p.refused != "" {
		return refusedStatus(generation, p.refused), true
	}
	policy, nodes, err := m.spans.Of(p.key)
	if policy == nil || policy.UID != string(p.uid) || policy.Generation != generation {
		return policyStatus{}, false
	}
	if err != nil {
		return refusedStatus(generation, err.Error()), true
	}
	current, failed := m.reports.count(markOf(p.uid, generation), nodes)
	return countedStatus(generation, len(nodes), current, failed), true
}

// write replaces a policy's status. If the policy changed meanwhile, the API server refuses the
// write, and the watch causes another pass.
func (m *statusWriter) write(ctx context.Context, w *dueWrite) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	now := time.Now()
	w.status.since(w.policy.status, metav1.NewTime(now))
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": w.uid, "resourceVersion": w.version}, "status": w.status,
	})
	if err == nil {
		_, err = m.api.dynamic.Resource(w.of).Namespace(w.key.Namespace).
			Patch(ctx, w.key.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	}
	failed := err != nil && !apierrors.IsConflict(err)
	m.last, m.tried[w.key] = w.key, try{w.version, now, failed}
	if failed && !m.warned && ctx.Err() == nil {
		m.warned = true
		m.config.Log.Warn("kubernetes: the status of a policy cannot be written", "object", fmt.Sprint(w.key), "error", err)
	}
}

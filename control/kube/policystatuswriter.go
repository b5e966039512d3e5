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

// Summing up: of each policy, on how many of the Nodes that have Pods of it its
// generation is in force. The Nodes follow from the objects that this agent has anyway
// (control.Spans), what is in force from the reports of all Nodes (reportstore.go).
//
// When something has changed, all sums are made anew; the next may not begin before
// twenty times as long has passed. A status is written only when it says something else
// than the one that the API server has, and one that is on its way only when it has been
// so for a while: what is realised within seconds is written once.

// Rates of writes. Each is told to every agent, which watches policies: writeFanOut
// bounds how many are told of one in a second, all in all.
const (
	writeFanOut = 5000
	leastWrites = 2 // a second
	mostWrites  = 50
	writeBurst  = 20
	sumShare    = 20
)

// statusWriter is what the agent that sums up has beside the objects.
type statusWriter struct {
	*Source
	spans   *policy.Spans
	reports *reportStore
	news    storeNews
	rate    flowcontrol.RateLimiter

	turn   uint64                    // of Source.turn, at the last pass
	tried  map[cluster.Key]try       // the last writes
	differ map[cluster.Key]time.Time // what is not as the API server has it, since when
	last   cluster.Key               // that was written: the others come first
	unsure bool                      // there is more to do, whatever comes
	next   time.Time                 // of the next pass
	warned bool                      // that a status cannot be written
}

// try is a write of a status: until the object is heard of again, there is no other.
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

// pass sums up if something has changed, and writes what the rate allows.
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

// changed says whether there is something to sum up, and takes it in.
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

// summedPolicy is a policy as its watch has it.
type summedPolicy struct {
	key     cluster.Key
	of      schema.GroupVersionResource
	refused string
	held
}

// policies are all Antrea-native policies that the API server has, by key.
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

// summedKind says whether objects of a kind have such a status.
func summedKind(k cluster.Kind) bool {
	return k == cluster.KindClusterNetworkPolicy || k == cluster.KindAntreaNetworkPolicy
}

// dueWrite is a status to be written.
type dueWrite struct {
	*summedPolicy
	status policyStatus
}

// due says whether a policy's status is another, and may be written now.
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

// status is what a policy's status is to be; false while this agent has not yet taken in
// what its watch has.
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

// write replaces a policy's status, unless the policy is another meanwhile: then the
// watch tells, and it is summed up anew.
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

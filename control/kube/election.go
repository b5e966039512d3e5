package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// One agent of the cluster sums up the status of policies: the one that holds a Lease. The
// others read the Lease at intervals that grow with the number of Nodes, at most 25 times a
// second together. They take a Lease that was not renewed within its duration. The holder is
// named by its Node, so an agent that restarts keeps the Lease.
//
// Two holders at a time do no harm. A status carries the version of the object that it was made
// from, and the API server refuses it for another version.

const (
	leaseName = "antrail-status"
	// leastLook and mostLook bound the time between two looks at the Lease. lookRate is the
	// limit of looks by all Nodes in a second.
	leastLook = 5 * time.Second
	mostLook  = 2 * time.Minute
	lookRate  = 25
	// A Lease lasts leaseLooks looks. A holder that could not renew it for heldLooks gives it up.
	leaseLooks = 3
	heldLooks  = 2
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// election is a candidate's view of the Lease.
type election struct {
	*Source
	seen    string    // the last holder and time of renewal
	since   time.Time // when seen last changed, by this clock
	renewed time.Time // by this candidate; zero: it does not hold the Lease
}

// lookTime is the time between two looks.
func (s *Source) lookTime() time.Duration {
	if s.pace.look > 0 {
		return s.pace.look
	}
	nodes := len(s.store.Snapshot().Nodes)
	return min(max(leastLook, time.Duration(nodes)*time.Second/lookRate), mostLook)
}

// runElection sums up while this agent holds the Lease, until ctx ends. It begins when told is
// closed, after this agent's first report.
func (s *Source) runElection(ctx context.Context, of Reporter, told <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-told:
	}
	e := &election{Source: s}
	var stop func()
	for ctx.Err() == nil {
		every := s.lookTime()
		err := e.look(ctx, every, time.Now())
		if err != nil {
			s.config.Log.Debug("kubernetes: cannot read or renew the Lease for summing up", "lease", leaseName, "error", err)
		}
		holds := !e.renewed.IsZero() && time.Since(e.renewed) < heldLooks*every
		switch {
		case holds && stop == nil:
			stop = s.startStatusWriter(ctx, of)
		case !holds && stop != nil:
			stop()
			stop = nil
		}
		pause(ctx, nil, every-time.Duration(rand.Int64N(int64(every/5))))
	}
	if stop != nil {
		stop()
	}
}

// startStatusWriter sums up until the function that it returns is called.
func (s *Source) startStatusWriter(ctx context.Context, of Reporter) (stop func()) {
	s.config.Log.Info("kubernetes: this agent sums up the status of policies", "lease", leaseName)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.runStatusWriter(ctx, of) })
	return func() { cancel(); wg.Wait() }
}

// look takes or renews the Lease, if it may. After an error the holder stays the same.
func (e *election) look(ctx context.Context, every time.Duration, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	of := e.api.dynamic.Resource(leases).Namespace(e.config.Namespace)
	lease, err := of.Get(ctx, leaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
		lease.SetName(leaseName)
		e.claim(lease, every, now)
		_, err = of.Create(ctx, lease, metav1.CreateOptions{})
		return e.outcome(now, err)
	}
	if err != nil {
		return err
	}
	if !e.free(lease, now) {
		e.renewed = time.Time{}
		return nil
	}
	e.claim(lease, every, now)
	_, err = of.Update(ctx, lease, metav1.UpdateOptions{})
	return e.outcome(now, err)
}

func (e *election) outcome(now time.Time, err error) error {
	switch {
	case err == nil:
		e.renewed = now
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err): // another was faster
		e.renewed = time.Time{}
	}
	return err
}

// free reports whether this candidate may have the Lease. It may if it has it already, or if
// the Lease did not change for its duration by this candidate's clock. Other clocks do not
// count.
func (e *election) free(lease *unstructured.Unstructured, now time.Time) bool {
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	renewal, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	seconds, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseDurationSeconds")
	if seen := holder + " " + renewal; seen != e.seen {
		e.seen, e.since = seen, now
	}
	return holder == "" || holder == e.config.Node || now.Sub(e.since) > time.Duration(seconds)*time.Second
}

// claim sets this candidate as the holder.
func (e *election) claim(lease *unstructured.Unstructured, every time.Duration, now time.Time) {
	at := now.UTC().Format(metav1.RFC3339Micro)
	was, _, _ := unstructured.NestedMap(lease.Object, "spec")
	spec := map[string]any{
		"holderIdentity": e.config.Node, "renewTime": at, "acquireTime": at,
		"leaseDurationSeconds": max(1, int64((leaseLooks * every).Seconds())), "leaseTransitions": int64(0),
	}
	if was["leaseTransitions"] != nil {
		spec["leaseTransitions"] = was["leaseTransitions"]
	}
	if was["holderIdentity"] == e.config.Node && was["acquireTime"] != nil {
		spec["acquireTime"] = was["acquireTime"]
	} else if n, ok := spec["leaseTransitions"].(int64); ok && was != nil {
		spec["leaseTransitions"] = n + 1
	}
	lease.Object["spec"] = spec
	e.seen, e.since = fmt.Sprint(e.config.Node, " ", at), now
}

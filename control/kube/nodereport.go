package kube

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Node's report: its AntreaAgentInfo, with the fields that Antrea gives it, and in two
// annotations how far the policies of its Pods have come. One agent of the cluster reads
// all of them and sums up (policystatuswriter.go).
//
// A report is written once a minute, which says that the agent is alive, and when
// policies have come further, but not more often than every five seconds.

// Reporter is the agent that reports. Its methods may be called from any goroutine.
type Reporter interface {
	// Report is how the Node stands; false while that is not known.
	Report() (Report, bool)
	// Changed is closed when Report may say something else.
	Changed() <-chan struct{}
	// Spans is for who sums up; nil when Antrea-native policies are not enforced.
	Spans() *policy.Spans
}

// Report is what an agent tells of its Node.
type Report struct {
	control.Progress
	Version string
	Subnets []netip.Prefix // of the Node's Pods
	// PodNamespace and PodName are the agent's own Pod; "" when it is in none.
	PodNamespace, PodName string
	// Unhealthy is what is wrong with the agent; nil: nothing.
	Unhealthy error
}

var agentInfos = schema.GroupVersionResource{Group: antreaGroup, Version: "v1beta1", Resource: "antreaagentinfos"}

// Annotations of an AntreaAgentInfo. What is realised is the marks of all policies that
// are in force on the Node, sorted and without anything between them, in base64; what has
// failed is JSON, from marks to reasons.
const (
	realisedAnnotation = "antrail.io/realised-policies"
	failedAnnotation   = "antrail.io/failed-policies"
)

// Bounds of a report: the API takes 256 KiB of annotations. A policy that is left out
// counts as not realised.
const (
	maxRealised = 16384
	maxFailed   = 20
	maxReason   = 160
)

// mark stands for one generation of a policy in reports: six bytes of a hash, by which
// two of ten thousand policies are taken for one another once in a million clusters.
type mark [6]byte

func markOf(uid types.UID, generation int64) (m mark) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", uid, generation))
	copy(m[:], sum[:])
	return m
}

// marks are sorted marks, one behind the other.
type marks string

func (m marks) has(one mark) bool {
	n := len(one)
	lo, hi := 0, len(m)/n
	for lo < hi {
		mid := (lo + hi) / 2
		if m[mid*n:(mid+1)*n] < marks(one[:]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(m)/n && m[lo*n:(lo+1)*n] == marks(one[:])
}

// policies are the annotations of a report.
func (r *Report) policies() (realised, failed string) {
	var all []mark
	reasons := map[string]string{}
	for _, p := range r.Policies {
		m := markOf(types.UID(p.Policy.UID), p.Policy.Generation)
		switch {
		case p.State == ledger.Installed && len(all) < maxRealised:
			all = append(all, m)
		case p.State != ledger.Installed && p.Reason != "" && len(reasons) < maxFailed:
			reasons[base64.RawStdEncoding.EncodeToString(m[:])] = p.Reason[:min(len(p.Reason), maxReason)]
		}
	}
	slices.SortFunc(all, func(a, b mark) int { return bytes.Compare(a[:], b[:]) })
	var plain []byte
	for _, m := range all {
		plain = append(plain, m[:]...)
	}
	text, _ := json.Marshal(reasons) // of strings: it cannot fail
	return base64.RawStdEncoding.EncodeToString(plain), string(text)
}

// pace is how often things are looked at and written.
type pace struct {
	gather time.Duration // from a change to a look at it
	least  time.Duration // between two reports of a Node, or two writes of a policy's status
	beat   time.Duration // between reports without a change
	quiet  time.Duration // an agent that was silent for so long does not count
	absent time.Duration // until a kind that the API server lacks is looked for again
	look   time.Duration // between two looks at who sums up; 0: by the number of Nodes
}

var usualPace = pace{
	gather: time.Second, least: 5 * time.Second, beat: time.Minute, quiet: 210 * time.Second, absent: 5 * time.Minute,
}

// reporting writes the reports of one Node.
type reporting struct {
	*Source
	of               Reporter
	realised, failed string    // as last written
	at               time.Time // when that was; zero: never
	next             time.Time // not before
	faults           int       // in a row
	told             bool      // policies did not fit
}

// RunStatus tells the cluster how this Node's policies stand, and how all Nodes' do when
// that falls to this agent (election.go), until ctx ends. Without the kind
// AntreaAgentInfo it does nothing.
func (s *Source) RunStatus(ctx context.Context, of Reporter) {
	var wg sync.WaitGroup
	told := make(chan struct{})
	tell := sync.OnceFunc(func() { close(told) })
	wg.Go(func() { s.runElection(ctx, of, told) })
	r := &reporting{Source: s, of: of}
	for ctx.Err() == nil {
		changed := of.Changed()
		wait := r.turn(ctx)
		if !r.at.IsZero() {
			tell()
		}
		pause(ctx, changed, wait)
		pause(ctx, nil, s.pace.gather)
	}
	wg.Wait()
}

// pause waits for a time, or less if something comes before.
func pause(ctx context.Context, less <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-less:
	case <-t.C:
	}
}

// turn writes a report if one is due, and returns how long the next may wait.
func (r *reporting) turn(ctx context.Context) time.Duration {
	now := time.Now()
	report, known := r.of.Report()
	if !known {
		return r.pace.beat
	}
	realised, failed := report.policies()
	news := r.at.IsZero() || realised != r.realised || failed != r.failed
	if !news && now.Sub(r.at) < r.pace.beat || now.Before(r.next) {
		return r.wait(now, news)
	}
	err := r.write(ctx, &report, realised, failed)
	switch {
	case apierrors.IsNotFound(err):
		r.next = now.Add(r.pace.absent)
	case err != nil:
		r.faults++
		r.next = now.Add(min(r.pace.least<<min(r.faults, 8), r.pace.absent))
		if r.faults == 1 && ctx.Err() == nil {
			r.config.Log.Warn("kubernetes: how policies stand on this Node cannot be told; trying again", "error", err)
		}
	default:
		news = false
		r.realised, r.failed, r.at, r.faults = realised, failed, now, 0
		r.next = now.Add(r.pace.least)
		r.tellLeftOut(&report)
	}
	return r.wait(now, news)
}

// wait is how long nothing is to be done. Nodes that began together part.
func (r *reporting) wait(now time.Time, news bool) time.Duration {
	due := r.at.Add(r.pace.beat - time.Duration(rand.Int64N(int64(r.pace.beat/10))))
	if news || due.Before(r.next) {
		due = r.next
	}
	return max(due.Sub(now), r.pace.gather)
}

// tellLeftOut logs once that a report was too small.
func (r *reporting) tellLeftOut(report *Report) {
	if !r.told && len(report.Policies) > maxRealised+maxFailed {
		r.told = true
		r.config.Log.Warn("kubernetes: more policies apply to this Node's Pods than a report holds; the others stay Realizing",
			"policies", len(report.Policies), "held", maxRealised)
	}
}

// write replaces the Node's report, or makes it.
func (r *reporting) write(ctx context.Context, report *Report, realised, failed string) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	info := r.info(report, time.Now())
	metadata := map[string]any{"annotations": map[string]any{realisedAnnotation: realised, failedAnnotation: failed}}
	info["metadata"] = metadata
	body, err := json.Marshal(info)
	if err != nil {
		return err
	}
	_, err = r.api.dynamic.Resource(agentInfos).Patch(ctx, r.config.Node, types.MergePatchType, body, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	node, err := r.api.node(ctx, r.config.Node)
	if err != nil {
		return err
	}
	maps.Copy(metadata, map[string]any{"name": r.config.Node, "ownerReferences": []any{map[string]any{
		"apiVersion": "v1", "kind": "Node", "name": node.Name, "uid": string(node.UID), // it goes with the Node
	}}})
	_, err = r.api.dynamic.Resource(agentInfos).Create(ctx, &unstructured.Unstructured{Object: info}, metav1.CreateOptions{})
	return err
}

// info is the report in the fields of an AntreaAgentInfo. There is no Open vSwitch, no
// controller and no API over TCP for it to tell of.
func (r *reporting) info(report *Report, now time.Time) map[string]any {
	subnets := []any{}
	for _, p := range report.Subnets {
		subnets = append(subnets, p.String())
	}
	healthy := map[string]any{"type": "AgentHealthy", "status": "True", "lastHeartbeatTime": now.UTC().Format(time.RFC3339), "reason": "", "message": ""}
	if report.Unhealthy != nil {
		healthy["status"], healthy["reason"], healthy["message"] = "False", "NotReady", report.Unhealthy.Error()
	}
	info := map[string]any{
		"apiVersion": agentInfos.GroupVersion().String(), "kind": "AntreaAgentInfo",
		"version": report.Version, "nodeSubnets": subnets, "localPodNum": int64(report.Pods),
		"nodeRef": map[string]any{"kind": "Node", "name": r.config.Node},
		"networkPolicyControllerInfo": map[string]any{
			"networkPolicyNum": int64(report.NetworkPolicies), "addressGroupNum": int64(report.AddressGroups), "appliedToGroupNum": int64(report.AppliedToGroups),
		},
		"agentConditions": []any{healthy},
	}
	if report.PodName != "" {
		info["podRef"] = map[string]any{"kind": "Pod", "namespace": report.PodNamespace, "name": report.PodName}
	}
	return info
}

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
	"sort"
	"strings"
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

// A Node's report is its AntreaAgentInfo, with Antrea's fields. Two annotations say which
// policies are in force on the Node. One agent of the cluster reads all reports and sums them up
// (policystatuswriter.go).
//
// A report is written once a minute as a sign of life, and when the state of policies changes,
// but at most every five seconds.

// Reporter is the agent that reports. Any goroutine may call its methods.
type Reporter interface {
	// Report is the state of the Node; false while it is unknown.
	Report() (Report, bool)
	// Changed is closed when Report may have changed.
	Changed() <-chan struct{}
	// Spans is for summing up; nil if Antrea-native policies are not enforced.
	Spans() *policy.Spans
}

// Report is the state of an agent's Node.
type Report struct {
	control.Progress
	Version string
	Subnets []netip.Prefix // of the Node's Pods
	// PodNamespace and PodName are the agent's own Pod; "" if it runs in none.
	PodNamespace, PodName string
	// Unhealthy is the agent's fault; nil: none.
	Unhealthy error
}

var agentInfos = schema.GroupVersionResource{Group: antreaGroup, Version: "v1beta1", Resource: "antreaagentinfos"}

// Annotations of an AntreaAgentInfo. The first has the marks of all policies that are in force on
// the Node: sorted, without separators, in base64. The second is JSON: reasons of failures by
// mark.
const (
	realisedAnnotation = "antrail.io/realised-policies"
	failedAnnotation   = "antrail.io/failed-policies"
)

// Bounds of a report, because the API accepts 256 KiB of annotations. A policy beyond them counts
// as not realised.
const (
	maxRealised = 16384
	maxFailed   = 20
	maxReason   = 160
)

// mark stands for one generation of a policy in reports. It is six bytes of a hash. In a cluster of
// ten thousand policies, two have the same mark with a probability of one in a million.
type mark [6]byte

func markOf(uid types.UID, generation int64) (m mark) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", uid, generation))
	copy(m[:], sum[:])
	return m
}

// marks are sorted marks without separators.
type marks string

func (m marks) has(one mark) bool {
	n, wanted := len(one), string(one[:])
	_, found := sort.Find(len(m)/n, func(i int) int { return strings.Compare(wanted, string(m[i*n:(i+1)*n])) })
	return found
}

// policies returns the annotations of a report.
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
	text, _ := json.Marshal(reasons) // strings: it cannot fail
	return base64.RawStdEncoding.EncodeToString(plain), string(text)
}

// pace has the intervals of reading and writing.
type pace struct {
	gather time.Duration // from a change to its handling
	least  time.Duration // between two reports of a Node, or two writes of a policy's status
	beat   time.Duration // between reports without a change
	quiet  time.Duration // after this silence, an agent does not count
	absent time.Duration // between two tries for a kind that the API server lacks
	look   time.Duration // between two looks at the Lease; 0: by the number of Nodes
}

var usualPace = pace{
	gather: time.Second, least: 5 * time.Second, beat: time.Minute, quiet: 210 * time.Second, absent: 5 * time.Minute,
}

// reporting writes the reports of one Node.
type reporting struct {
	*Source
	of               Reporter
	realised, failed string    // as last written
	at               time.Time // of the last report; zero: none
	next             time.Time // earliest time of the next report
	faults           int       // failures in a row
	told             bool      // it was logged that policies did not fit
}

// RunStatus writes this Node's reports until ctx ends. If this agent holds the Lease (election.go),
// it also writes the status of policies. Without the kind AntreaAgentInfo it does nothing.
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

// pause waits for a time, or until less or ctx ends it.
func pause(ctx context.Context, less <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-less:
	case <-t.C:
	}
}

// turn writes a report if one is due, and returns the time until the next.
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
			r.config.Log.Warn("kubernetes: cannot write the state of this Node's policies; trying again", "error", err)
		}
	default:
		news = false
		r.realised, r.failed, r.at, r.faults = realised, failed, now, 0
		r.next = now.Add(r.pace.least)
		r.tellLeftOut(&report)
	}
	return r.wait(now, news)
}

// wait is the time until the next report. It is random, so that Nodes do not report in step.
func (r *reporting) wait(now time.Time, news bool) time.Duration {
	due := r.at.Add(r.pace.beat - time.Duration(rand.Int64N(int64(r.pace.beat/10))))
	if news || due.Before(r.next) {
		due = r.next
	}
	return max(due.Sub(now), r.pace.gather)
}

// tellLeftOut logs once that a report lacks policies.
func (r *reporting) tellLeftOut(report *Report) {
	if !r.told && len(report.Policies) > maxRealised+maxFailed {
		r.told = true
		r.config.Log.Warn("kubernetes: more policies apply to this Node's Pods than a report holds; the others stay Realizing",
			"policies", len(report.Policies), "held", maxRealised)
	}
}

// write updates the Node's report, or creates it.
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
		"apiVersion": "v1", "kind": "Node", "name": node.Name, "uid": string(node.UID), // deleted with the Node
	}}})
	_, err = r.api.dynamic.Resource(agentInfos).Create(ctx, &unstructured.Unstructured{Object: info}, metav1.CreateOptions{})
	return err
}

// info is the report in the fields of an AntreaAgentInfo. Open vSwitch, controller and a TCP API do
// not exist here, so their fields stay empty.
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

package kube

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The status of an Antrea-native policy, with the words and meanings of Antrea's API
// (NetworkPolicyStatus of crd.antrea.io/v1beta1).

// Phases of a policy. Pending: not processed or refused. Realizing: in force on some of its Nodes.
// Realized: in force on all. Failed: failed on some Nodes and in force on all others.
const (
	phasePending   = "Pending"
	phaseRealizing = "Realizing"
	phaseRealized  = "Realized"
	phaseFailed    = "Failed"
)

// Types and reasons of conditions.
const (
	conditionRealizable = "Realizable"
	conditionFailure    = "RealizationFailure"
	reasonFailure       = "NetworkPolicyRealizationFailedOnNode"
)

// maxConditionMessage bounds a message, in bytes.
const maxConditionMessage = 512

type policyStatus struct {
	Phase                string            `json:"phase"`
	ObservedGeneration   int64             `json:"observedGeneration"`
	CurrentNodesRealized int32             `json:"currentNodesRealized"`
	DesiredNodesRealized int32             `json:"desiredNodesRealized"`
	Conditions           []policyCondition `json:"conditions"`
}

type policyCondition struct {
	Type               string      `json:"type"`
	Status             string      `json:"status"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	Reason             string      `json:"reason,omitempty"`
	Message            string      `json:"message,omitempty"`
}

// readStatus is the status of a policy in the API server.
func readStatus(policy map[string]any) (s policyStatus) {
	if m, ok := policy["status"].(map[string]any); ok {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(m, &s) // an unreadable status is overwritten
	}
	return s
}

// refusedStatus is the status of a policy that no Node enforces.
func refusedStatus(generation int64, why string) policyStatus {
	return policyStatus{Phase: phasePending, ObservedGeneration: generation, Conditions: []policyCondition{
		{Type: conditionRealizable, Status: "False", Reason: refusedWord, Message: shortened(why)},
	}}
}

// countedStatus is the status of a policy that is in force on current of desired Nodes. failed has
// the reasons of other Nodes, as "Node":"reason".
func countedStatus(generation int64, desired, current int, failed []string) policyStatus {
	s := policyStatus{
		Phase: phaseRealizing, ObservedGeneration: generation, CurrentNodesRealized: int32(current), DesiredNodesRealized: int32(desired),
		Conditions: []policyCondition{{Type: conditionRealizable, Status: "True"}},
	}
	if len(failed) > 0 {
		slices.Sort(failed)
		s.Conditions = append(s.Conditions, policyCondition{Type: conditionFailure, Status: "True", Reason: reasonFailure,
			Message: shortened(fmt.Sprintf("Failed Nodes count %d: %s", len(failed), strings.Join(failed, ", ")))})
	}
	switch {
	case current == desired:
		s.Phase = phaseRealized
	case current+len(failed) == desired:
		s.Phase = phaseFailed
	}
	return s
}

func shortened(text string) string {
	if len(text) > maxConditionMessage {
		return strings.ToValidUTF8(text[:maxConditionMessage-3], "") + "..."
	}
	return text
}

// same reports whether two statuses are equal except for times.
func (s policyStatus) same(o policyStatus) bool {
	timeless := func(a, b policyCondition) bool {
		a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
		return a == b
	}
	return s.Phase == o.Phase && s.ObservedGeneration == o.ObservedGeneration && s.CurrentNodesRealized == o.CurrentNodesRealized &&
		s.DesiredNodesRealized == o.DesiredNodesRealized && slices.EqualFunc(s.Conditions, o.Conditions, timeless)
}

// since sets the times of the conditions: that of the former status if the condition is the same,
// otherwise now.
func (s policyStatus) since(before policyStatus, now metav1.Time) {
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.LastTransitionTime = now
		for _, was := range before.Conditions {
			if was.Type == c.Type && was.Status == c.Status && !was.LastTransitionTime.IsZero() {
				c.LastTransitionTime = was.LastTransitionTime
			}
		}
	}
}

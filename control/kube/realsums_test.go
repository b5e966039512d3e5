//go:build k8s

package kube

import (
	"strings"
	"testing"
)

// realStatus is a real API server as a statusAPI.
type realStatus struct{ *realAPI }

func (r realStatus) find(apiVersion, kind, namespace, name string) map[string]any {
	return r.Get(apiVersion, kind, namespace, name)
}

func (r realStatus) writes(what string) int {
	verb, resource, _ := strings.Cut(what, " ")
	n := 0
	for request, times := range r.Requests() {
		words := strings.Fields(request)
		if words[0] == verb && words[2] == resource {
			n += times
		}
	}
	return n
}

// TestRealStatus is the story of TestStatus, with the rights of the agent.
func TestRealStatus(t *testing.T) { statusStory(t, realStatus{newReal(t, true)}) }

package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
)

// Suggestions for names that do not exist.

// mostMeant is the limit of suggestions in an error.
const mostMeant = 3

// noPod is the error that no Pod of a name has an address. It suggests Pods of that name in other
// namespaces. In the same namespace it suggests similar names, and names that continue with a
// generated suffix.
func (v *view) noPod(n cluster.Name) error {
	var meant []string
	for key, pod := range v.Pods {
		if len(pod.IPs) > 0 && !pod.Terminated() && mayMean(n, cluster.Name{Namespace: key.Namespace, Name: key.Name}) {
			meant = append(meant, key.Namespace+"/"+key.Name)
		}
	}
	return withSuggestions(fmt.Sprintf("there is no Pod %s/%s with an address", n.Namespace, n.Name), meant)
}

// noService is the error that no Service has a name, with the same suggestions.
func (v *view) noService(n cluster.Name) error {
	var meant []string
	for key := range v.Services {
		if mayMean(n, cluster.Name{Namespace: key.Namespace, Name: key.Name}) {
			meant = append(meant, key.Namespace+"/"+key.Name)
		}
	}
	return withSuggestions(fmt.Sprintf("there is no Service %s/%s", n.Namespace, n.Name), meant)
}

// withSuggestions makes an error with some suggestions.
func withSuggestions(text string, meant []string) error {
	if meant == nil {
		return fmt.Errorf("%s", text)
	}
	slices.Sort(meant)
	if more := len(meant) - mostMeant; more > 0 {
		meant = append(meant[:mostMeant], fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("%s; there is %s", text, strings.Join(meant, ", "))
}

// mayMean reports whether a mistyped name may mean the other.
func mayMean(typed, other cluster.Name) bool {
	if typed.Name == other.Name {
		return true
	}
	const typos = 2
	return typed.Namespace == other.Namespace && (strings.HasPrefix(other.Name, typed.Name+"-") || flow.EditDistance(typed.Name, other.Name) <= typos)
}

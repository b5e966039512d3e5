package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
)

// Names that somebody typed and nothing has: what may have been meant.

// mostMeant is how many names an error offers.
const mostMeant = 3

// noPod is the error that no Pod of a name has an address. It offers Pods of that name
// in other namespaces, and those of its namespace whose names are almost the same, or
// go on with the name of what made them.
func (v *view) noPod(n cluster.Name) error {
	var meant []string
	for key, pod := range v.Pods {
		if len(pod.IPs) > 0 && !pod.Terminated() && mayMean(n, cluster.Name{Namespace: key.Namespace, Name: key.Name}) {
			meant = append(meant, key.Namespace+"/"+key.Name)
		}
	}
	return offer(fmt.Sprintf("there is no Pod %s/%s with an address", n.Namespace, n.Name), meant)
}

// noService is the error that there is no Service of a name, with the same offers.
func (v *view) noService(n cluster.Name) error {
	var meant []string
	for key := range v.Services {
		if mayMean(n, cluster.Name{Namespace: key.Namespace, Name: key.Name}) {
			meant = append(meant, key.Namespace+"/"+key.Name)
		}
	}
	return offer(fmt.Sprintf("there is no Service %s/%s", n.Namespace, n.Name), meant)
}

// offer is an error with some of what may have been meant.
func offer(text string, meant []string) error {
	if meant == nil {
		return fmt.Errorf("%s", text)
	}
	slices.Sort(meant)
	if more := len(meant) - mostMeant; more > 0 {
		meant = append(meant[:mostMeant], fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("%s; there is %s", text, strings.Join(meant, ", "))
}

// mayMean says whether who typed one name may have meant the other.
func mayMean(typed, other cluster.Name) bool {
	if typed.Name == other.Name {
		return true
	}
	const typos = 2
	return typed.Namespace == other.Namespace && (strings.HasPrefix(other.Name, typed.Name+"-") || edits(typed.Name, other.Name) <= typos)
}

// edits is how many letters have to be put in, taken out or changed to make one text
// the other (the distance of Levenshtein).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

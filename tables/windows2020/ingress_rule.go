package windows2020

import "github.com/antrail/antrail/tables/layout"

// IngressRule is the place for policies, as on Linux. The document names only its number, and
// this program has no policy.
//
// Reads:  nothing.
// Writes: nothing.
// Next:   ConntrackCommit, which is the table-miss.

func ingressRule() []layout.Entry {
	return []layout.Entry{miss(tableIngressRule, tableConntrackCommit)}
}

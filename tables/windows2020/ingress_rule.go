package windows2020

import "github.com/antrail/antrail/tables/layout"

// IngressRule is where policies decide, as on Linux. The document goes to it by its number
// alone, and this program has no policy.
//
// Reads:  nothing.
// Writes: nothing.
// Next:   ConntrackCommit, which is the table-miss.

func ingressRule() []layout.Entry {
	return []layout.Entry{miss(tableIngressRule, tableConntrackCommit)}
}

package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/json"
)

// choose returns the items that the options select, in their order.
func (v *View) choose(all []api.Item) (some []api.Item, err error) {
	for _, i := range all {
		if v.Namespace != "" && i.Namespace != v.Namespace || !v.selector.Matches(labels.Set(i.Labels)) {
			continue
		}
		if v.Names == nil || slices.ContainsFunc(v.Names, func(n string) bool { return isNamed(&i, n) }) {
			some = append(some, i)
		}
	}
	for _, name := range v.Names {
		if !slices.ContainsFunc(some, func(i api.Item) bool { return isNamed(&i, name) }) {
			return nil, v.missing(name, all)
		}
	}
	return some, v.sort(some)
}

func isNamed(i *api.Item, name string) bool {
	return i.Name == name || i.Namespace+"/"+i.Name == name
}

// missing is the error for a name without an object. It says where the name exists, or which
// names do.
func (v *View) missing(name string, all []api.Item) error {
	where := ""
	if v.Namespace != "" {
		where = fmt.Sprintf(" in namespace %s", v.Namespace)
	}
	var there []string
	for _, i := range all {
		full := strings.TrimPrefix(i.Namespace+"/"+i.Name, "/")
		if isNamed(&i, name) {
			return fmt.Errorf("%s: there is no %q%s with these labels; there is %s", v.Kind, name, where, full)
		}
		there = append(there, full)
	}
	if there == nil {
		return fmt.Errorf("%s: there is no %q%s; there are none", v.Kind, name, where)
	}
	const most = 20
	rest := ""
	if len(there) > most {
		there, rest = there[:most], fmt.Sprintf(" and %d others", len(there)-most)
	}
	return fmt.Errorf("%s: there is no %q%s; there are %s%s", v.Kind, name, where, strings.Join(there, ", "), rest)
}

// sort orders items by the field that the options name. Items without it come first.
func (v *View) sort(items []api.Item) error {
	if v.sortBy == nil {
		return nil
	}
	keys, found := map[string]any{}, false
	id := func(i *api.Item) string { return i.Object + "/" + i.Name }
	for i := range items {
		record, err := valueOf(items[i].Record)
		if err != nil {
			return err
		}
		v.sortBy.AllowMissingKeys(true)
		results, err := v.sortBy.FindResults(record)
		if err != nil {
			return fmt.Errorf("--sort-by %s: %w", v.SortBy, err)
		}
		if len(results) > 0 && len(results[0]) > 0 {
			keys[id(&items[i])], found = results[0][0].Interface(), true
		}
	}
	if !found && len(items) > 0 {
		return fmt.Errorf("--sort-by %s: no object has such a field; -o json shows the fields", v.SortBy)
	}
	slices.SortStableFunc(items, func(a, b api.Item) int { return compare(keys[id(&a)], keys[id(&b)]) })
	return nil
}

// compare orders JSON values: missing ones, numbers, then texts.
func compare(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	x, isNumber := number(a)
	y, _ := number(b)
	if isNumber {
		return cmp.Compare(x, y)
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func rank(v any) int {
	_, isNumber := number(v)
	switch {
	case v == nil:
		return 0
	case isNumber:
		return 1
	}
	return 2
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// valueOf decodes JSON. Whole numbers become int64, so that they print as whole numbers.
func valueOf(text []byte) (v any, err error) {
	err = json.UnmarshalCaseSensitivePreserveInts(text, &v)
	return v, err
}

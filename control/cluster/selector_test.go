package cluster

import "testing"

// TestSelectorMatches follows the operators of metav1.LabelSelector.
func TestSelectorMatches(t *testing.T) {
	web := Labels{"app": "web", "tier": "front"}
	tests := map[string]struct {
		selector Selector
		want     bool
	}{
		"empty":                    {NewSelector(), true},
		"label":                    {SelectLabels(Labels{"app": "web"}), true},
		"all labels":               {SelectLabels(Labels{"app": "web", "tier": "back"}), false},
		"in":                       {NewSelector(Requirement{"app", In, []string{"db", "web"}}), true},
		"not in":                   {NewSelector(Requirement{"app", NotIn, []string{"db", "web"}}), false},
		"not in, without label":    {NewSelector(Requirement{"zone", NotIn, []string{"a"}}), true},
		"in, without label":        {NewSelector(Requirement{"zone", In, []string{""}}), false},
		"exists":                   {NewSelector(Requirement{"tier", Exists, nil}), true},
		"exists, without label":    {NewSelector(Requirement{"zone", Exists, nil}), false},
		"does not exist":           {NewSelector(Requirement{"tier", DoesNotExist, nil}), false},
		"does not exist, as asked": {NewSelector(Requirement{"zone", DoesNotExist, nil}), true},
	}
	for name, tt := range tests {
		if got := tt.selector.Matches(web); got != tt.want {
			t.Errorf("%s: %q matches: %v", name, tt.selector, got)
		}
	}
}

// TestSelectorText: two selectors have the same text exactly if they mean the same.
func TestSelectorText(t *testing.T) {
	a := NewSelector(Requirement{"b", In, []string{"2", "1", "2"}}, Requirement{"a", Exists, nil})
	b := NewSelector(Requirement{"a", Exists, nil}, Requirement{"b", In, []string{"1", "2"}}, Requirement{"a", Exists, nil})
	if want := "a,b in (1,2)"; a.String() != want || b.String() != want {
		t.Errorf("%q and %q, want %q", a, b, want)
	}
	c := NewSelector(Requirement{"x", DoesNotExist, nil}, Requirement{"y", NotIn, []string{"1"}}, Requirement{"z", NotIn, []string{"1", "2"}})
	if want := "!x,y!=1,z notin (1,2)"; c.String() != want {
		t.Errorf("%q, want %q", c, want)
	}
	if len(a.Requirements()) != 2 || !NewSelector().Empty() || a.Empty() {
		t.Error("requirements")
	}
}

// TestSelectsPod combines selectors of Pods and of their namespaces.
func TestSelectsPod(t *testing.T) {
	c := EmptyCluster()
	red := Key{KindNamespace, "", "red"}
	c.Namespaces[red] = &Namespace{Meta: Meta{Key: red, Labels: Labels{"colour": "red"}}}
	pod := &Pod{Meta: Meta{Key: Key{KindPod, "red", "p"}, Labels: Labels{"app": "web"}}}
	web, db := SelectLabels(Labels{"app": "web"}), SelectLabels(Labels{"app": "db"})
	inRed, byName := SelectLabels(Labels{"colour": "red"}), SelectLabels(Labels{NamespaceNameLabel: "blue"})
	for name, tt := range map[string]struct {
		set  PodSet
		want bool
	}{
		"nothing":        {PodSet{}, false},
		"pods":           {PodSet{Pods: &web}, true},
		"other pods":     {PodSet{Pods: &db}, false},
		"namespace":      {PodSet{Namespaces: &inRed}, true},
		"both":           {PodSet{Pods: &web, Namespaces: &inRed}, true},
		"pods elsewhere": {PodSet{Pods: &web, Namespaces: &byName}, false},
	} {
		if got := c.SelectsPod(tt.set, pod); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	pod.Key.Namespace = "blue"
	if !c.SelectsPod(PodSet{Namespaces: &byName}, pod) {
		t.Error("a missing namespace has no name label")
	}
}

package support

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// nameKeys are the fields of answers that have names, with the kind of name. More specific ones
// come first.
var nameKeys = []struct{ key, word string }{
	{"object", ""}, {"pod", "pod"}, {"source", "pod"}, {"destination", "pod"}, {"node", "node"}, {"namespace", "namespace"}, {"link", "link"}, {"name", "name"},
}

// kindWords replace the names of a kind of objects.
var kindWords = map[string]string{"Pod": "pod", "Service": "service", "Node": "node", "NodeConfig": "node", "Egress": "egress", "TrafficControl": "trafficcontrol"}

// open are names that every cluster has.
var open = []string{"default", "kube-system", "kube-public", "kube-node-lease", "antrea-gw0", "antrea-tun0", "br-int", "eth0", "lo", "none", "external", "node"}

// ownName is a name that antrail gives: that of a rule without one.
var ownName = regexp.MustCompile(`^(in|e)gress\[\d+\]$`)

// nameSet has the names of an archive, with the word that replaces each.
type nameSet struct{ words map[string]string }

// addName adds a name. Its first word wins: an archive has one replacement for a name.
func (n *nameSet) addName(word, name string) {
	known := n.words[name] != ""
	if known || len(name) < 2 || slices.Contains(open, name) || ownName.MatchString(name) || !strings.ContainsFunc(name, isLetter) {
		return
	}
	n.words[name] = word
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// notePath adds NAME, NAMESPACE/NAME or NAMESPACE/NAME@INTERFACE, all of them names of one kind.
func (n *nameSet) notePath(word, path string) {
	path, _, _ = strings.Cut(path, "@")
	namespace, name, two := strings.Cut(path, "/")
	if !two {
		n.addName(word, path)
		return
	}
	n.addName("namespace", namespace)
	n.addName(word, name)
}

// noteObject adds KIND/NAME or KIND/NAMESPACE/NAME.
func (n *nameSet) noteObject(text string) {
	kind, path, ok := strings.Cut(text, "/")
	if !ok {
		return
	}
	word := kindWords[kind]
	if strings.HasSuffix(kind, "Policy") {
		word = "policy"
	}
	word = cmp.Or(word, "object")
	n.notePath(word, path)
}

// noteJSON adds the values of a field in an answer. key is the field of v.
func (n *nameSet) noteJSON(v any, key, field, word string) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			n.noteJSON(inner, k, field, word)
		}
	case []any:
		for _, inner := range v {
			n.noteJSON(inner, key, field, word)
		}
	case string:
		switch {
		case key != field || strings.ContainsAny(v, " :"):
		case field == "object":
			n.noteObject(v)
		default:
			n.notePath(word, v)
		}
	}
}

// attribute is a name in the log (pod=default/web-a), a metric or the configuration (nodeName: node-a).
var attribute = regexp.MustCompile(`(?m)\b(pod|node|nodeName|namespace|service|policy|object|link|port|name)(?:=|: ?)"?([A-Za-z0-9][A-Za-z0-9_./@-]*)`)

// noteText adds the names in the log, the metrics and the configuration. Only these name
// objects that are gone.
func (n *nameSet) noteText(text []byte) {
	for _, m := range attribute.FindAllSubmatch(text, -1) {
		word, name := string(m[1]), string(m[2])
		switch word {
		case "nodeName":
			word = "node"
		case "object":
			n.noteObject(name)
			continue
		}
		n.notePath(word, name)
	}
}

// namesOf are the names in an archive's files.
func namesOf(files []file) *nameSet {
	n := &nameSet{map[string]string{}}
	var answers []any
	for _, f := range files {
		var v any
		if strings.HasSuffix(f.name, ".json") && json.Unmarshal(f.text, &v) == nil {
			answers = append(answers, v)
		}
	}
	for _, field := range nameKeys {
		for _, v := range answers {
			n.noteJSON(v, "", field.key, field.word)
		}
	}
	for _, f := range files {
		if slices.Contains([]string{"config.yaml", "agent.log", "metrics.txt"}, f.name) {
			n.noteText(f.text)
		}
	}
	return n
}

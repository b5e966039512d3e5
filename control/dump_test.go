package control

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
)

// Dumps are compared without regard to assigned numbers: conjunction ids, group ids, VLAN ids of
// application-layer rules and marks of Egress addresses. These depend on the order in which objects
// came. Two dumps are the same if a renaming of such ids makes them equal.

// dumpLines are the entries and groups of a program, as dump-flows --names --no-stats and
// dump-groups print them, without cookies.
func dumpLines(p *flow.Program) []string {
	var lines []string
	for _, e := range p.Entries {
		bare := *e
		bare.Cookie = 0
		lines = append(lines, strings.TrimSpace(bare.Text(flow.Format{Names: p.Names})))
	}
	for _, g := range p.Groups {
		lines = append(lines, strings.TrimSpace(g.Text(p.Names)))
	}
	for _, m := range p.Meters {
		lines = append(lines, strings.ReplaceAll(m.Text(), "\n", " "))
	}
	return lines
}

// idPattern finds ids in lines of matching tables.
type idPattern struct {
	table   *regexp.Regexp
	pattern *regexp.Regexp // groups: before, id, after
	kind    string
	base    int
	shift   uint
}

var (
	anyTable   = regexp.MustCompile(``)
	ruleTables = regexp.MustCompile(`Rule$`)
	idPatterns = []idPattern{
		{anyTable, regexp.MustCompile(`(conjunction\()(\d+)(,)`), "conj", 10, 0},
		{anyTable, regexp.MustCompile(`(conj_id=)(\d+)(\b)`), "conj", 10, 0},
		{anyTable, regexp.MustCompile(`(set_field:0x)([0-9a-f]+)(/0xffffffff->ct_label)`), "conj", 16, 0},
		{anyTable, regexp.MustCompile(`(set_field:0x)([0-9a-f]+)(/0xffffffff00000000->ct_label)`), "conj", 16, 32},
		{anyTable, regexp.MustCompile(`(set_field:0x)([0-9a-f]+)(/0xfff0000000000000000->ct_label)`), "vlan", 16, 64},
		{anyTable, regexp.MustCompile(`(set_field:0x)([0-9a-f]+)(/0xff->pkt_mark)`), "mark", 16, 0},
		{anyTable, regexp.MustCompile(`(ct_label=0x)([0-9a-f]+)(/0xffffffff\b)`), "conj", 16, 0},
		{anyTable, regexp.MustCompile(`(ct_label=0x)([0-9a-f]+)(/0xffffffff00000000)`), "conj", 16, 32},
		{ruleTables, regexp.MustCompile(`(set_field:0x)([0-9a-f]+)(->reg[356]\b)`), "conj", 16, 0},
		{regexp.MustCompile(`Metric$`), regexp.MustCompile(`(reg3=0x)([0-9a-f]+)(\b)`), "conj", 16, 0},
		{anyTable, regexp.MustCompile(`(set_field:0x)([0-9a-f]+)(->reg7\b)`), "group", 16, 0},
		{anyTable, regexp.MustCompile(`(\breg7=0x)([0-9a-f]+)(\b)`), "group", 16, 0},
		{anyTable, regexp.MustCompile(`(\bgroup:)(\d+)(\b)`), "group", 10, 0},
		{anyTable, regexp.MustCompile(`(\bgroup_id=)(\d+)(\b)`), "group", 10, 0},
		{anyTable, regexp.MustCompile(`(cookie=0x[0-9a-f]+0300)([0-9a-f]{8})(\b)`), "group", 16, 0},
	}
	idToken    = regexp.MustCompile(`<(conj|group|vlan|mark):(\d+)>`)
	controller = regexp.MustCompile(`\bid=\d+(,userdata)`)
	tableName  = regexp.MustCompile(`^table=(\w+)`)
)

// tokens marks the ids in a line: <conj:7>.
func tokens(line string) string {
	line = controller.ReplaceAllString(line, "id=N$1")
	table := ""
	if m := tableName.FindStringSubmatch(line); m != nil {
		table = m[1]
	}
	for _, p := range idPatterns {
		if !p.table.MatchString(table) {
			continue
		}
		line = p.pattern.ReplaceAllStringFunc(line, func(s string) string {
			m := p.pattern.FindStringSubmatch(s)
			return m[1] + fmt.Sprintf("<%s:%d>", p.kind, shiftedID(m[2], p.base, p.shift)) + m[3]
		})
	}
	return line
}

// shiftedID reads a number whose id begins at a bit, a multiple of four.
func shiftedID(text string, base int, shift uint) uint64 {
	if n := int(shift / 4); n > 0 {
		text = text[:max(len(text)-n, 0)]
	}
	id, _ := strconv.ParseUint(text, base, 64)
	return id
}

// canonical renames ids by their use. In each round, the new name of an id is a digest of the lines
// that contain it, with the names of the last round.
func canonical(lines []string) map[string]int {
	marked := make([]string, len(lines))
	colour := map[string]string{}
	for i, l := range lines {
		marked[i] = tokens(l)
		for _, m := range idToken.FindAllStringSubmatch(marked[i], -1) {
			colour[m[0]] = "<" + m[1] + ">"
		}
	}
	for range 6 {
		seen := map[string][]string{}
		for _, l := range marked {
			for me := range idsIn(l) {
				seen[me] = append(seen[me], recolour(l, me, colour))
			}
		}
		next := map[string]string{}
		for id, in := range seen {
			slices.Sort(in)
			next[id] = fmt.Sprintf("<%s#%x>", idToken.FindStringSubmatch(id)[1], sha256.Sum256([]byte(strings.Join(in, "\n"))))
		}
		colour = next
	}
	count := map[string]int{}
	for _, l := range marked {
		count[recolour(l, "", colour)]++
	}
	return count
}

func idsIn(line string) map[string]bool {
	ids := map[string]bool{}
	for _, id := range idToken.FindAllString(line, -1) {
		ids[id] = true
	}
	return ids
}

func recolour(line, me string, colour map[string]string) string {
	return idToken.ReplaceAllStringFunc(line, func(id string) string {
		if id == me {
			return "*"
		}
		return colour[id]
	})
}

// sameDump reports whether two dumps are the same pipeline. If not, it returns the lines that differ
// in more than ids.
func sameDump(want, got []string) (bool, string) {
	if maps.Equal(canonical(want), canonical(got)) {
		return true, ""
	}
	count := map[string]int{}
	for _, l := range want {
		count[idToken.ReplaceAllString(tokens(l), "<$1>")]--
	}
	for _, l := range got {
		count[idToken.ReplaceAllString(tokens(l), "<$1>")]++
	}
	var diff []string
	for l, n := range count {
		switch {
		case n < 0:
			diff = append(diff, fmt.Sprintf("- %s (%d)", l, -n))
		case n > 0:
			diff = append(diff, fmt.Sprintf("+ %s (%d)", l, n))
		}
	}
	slices.Sort(diff)
	if len(diff) == 0 {
		return false, "the lines agree, but their ids are tied together differently"
	}
	return false, strings.Join(diff, "\n")
}

// TestSameDump distinguishes a renaming from a change.
func TestSameDump(t *testing.T) {
	a := []string{
		"table=IngressRule, priority=190,conj_id=3,ip actions=set_field:0x3->reg6,ct(commit,exec(set_field:0x3/0xffffffff->ct_label))",
		"table=IngressRule, priority=200,tcp,tp_dst=80 actions=conjunction(3,3/3),conjunction(4,3/3)",
		"table=IngressRule, priority=190,conj_id=4,ip actions=drop",
		"table=ServiceLB, priority=200,tcp actions=set_field:0xa->reg7,group:10",
		"group_id=10,type=select,bucket=bucket_id:0,actions=drop",
	}
	rename := strings.NewReplacer("conj_id=3", "conj_id=17", "0x3", "0x11", "conjunction(3", "conjunction(17", "0xa->", "0x63->", "group:10", "group:99", "group_id=10", "group_id=99")
	var b []string
	for _, l := range a {
		b = append(b, rename.Replace(l))
	}
	slices.Reverse(b)
	if ok, diff := sameDump(a, b); !ok {
		t.Errorf("a renaming is a difference:\n%s", diff)
	}
	b[0] = strings.Replace(b[0], "99", "98", 1) // a group that no entry names
	if ok, _ := sameDump(a, b); ok {
		t.Error("a group that lost its entry is no difference")
	}
	b = append(slices.Clone(a), "table=Output, priority=0 actions=drop")
	if ok, diff := sameDump(a, b); ok || !strings.Contains(diff, "+ table=Output") {
		t.Errorf("another entry: %v %s", ok, diff)
	}
}

package learn

import "strings"

// Compare is two ways line by line, as diff prints them. "  " marks lines of both, "- "
// lines of only the first, "+ " lines of only the second. same says that they do not
// differ. Of the lines of both, only those near a difference are shown.
func Compare(before, after *Way) (text string, same bool) {
	a, b := before.lines(), after.lines()
	common := longest(a, b)
	var out []string
	same = true
	say := func(mark, line string) {
		out = append(out, mark+line)
		same = same && mark == "  "
	}
	i, j := 0, 0
	for _, c := range append(common, [2]int{len(a), len(b)}) {
		for ; i < c[0]; i++ {
			say("- ", a[i])
		}
		for ; j < c[1]; j++ {
			say("+ ", b[j])
		}
		if i < len(a) && j < len(b) {
			say("  ", a[i])
			i, j = i+1, j+1
		}
	}
	return strings.Join(around(out), "\n") + "\n", same
}

// near is the number of common lines before and behind a difference.
const near = 3

// around leaves out lines far from a difference, with ... for each gap.
func around(lines []string) (rest []string) {
	for i, l := range lines {
		close := i == 0
		for _, other := range lines[max(0, i-near):min(len(lines), i+near+1)] {
			close = close || !strings.HasPrefix(other, "  ")
		}
		if close {
			rest = append(rest, l)
		} else if rest[len(rest)-1] != "  ..." {
			rest = append(rest, "  ...")
		}
	}
	return rest
}

// longest is the longest common subsequence of lines, as pairs of indexes.
func longest(a, b []string) (pairs [][2]int) {
	best := make([][]int, len(a)+1) // its length from indexes i and j on
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if a[i] == b[j] {
				best[i][j] = 1 + best[i+1][j+1]
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case best[i+1][j] >= best[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

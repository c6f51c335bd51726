; Functions of NumPy's data handler that count, and refuse what they are told to; they hand on all the rest.
@live = global i64 0
@peak = global i64 0
@count = global i64 0
@refused = global i64 0
@largest = global i64 0
@most = global i64 {unlimited}
@failing = global i64 0

declare i64 @{usable}(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)

; Whether an allocation that makes live data grow by so many bytes is allowed. Counts it.
define internal i1 @allow(i64 %bytes, i64 %growth) {{
  %before = atomicrmw add ptr @count, i64 1 seq_cst
  %number = add i64 %before, 1
  %any = atomicrmw max ptr @largest, i64 %bytes seq_cst
  %chosen = load atomic i64, ptr @failing seq_cst, align 8
  %fails = icmp eq i64 %number, %chosen
  %limit = load atomic i64, ptr @most seq_cst, align 8
  %now = load atomic i64, ptr @live seq_cst, align 8
  %left = sub i64 %limit, %now
  %exceeds = icmp sgt i64 %growth, %left
  %shrinks = icmp sle i64 %growth, 0
  %grows = xor i1 %shrinks, true
  %beyond = and i1 %exceeds, %grows
  %no = or i1 %fails, %beyond
  br i1 %no, label %refuse, label %agree
refuse:
  %more = atomicrmw add ptr @refused, i64 1 seq_cst
  ret i1 false
agree:
  ret i1 true
}}

define internal void @add(i64 %growth) {{
  %before = atomicrmw add ptr @live, i64 %growth seq_cst
  %now = add i64 %before, %growth
  %old = atomicrmw max ptr @peak, i64 %now seq_cst
  ret void
}}

define internal i64 @size_of(ptr %p) {{
  %none = icmp eq ptr %p, null
  br i1 %none, label %nothing, label %something
nothing:
  ret i64 0
something:
  %size = call i64 @{usable}(ptr %p)
  ret i64 %size
}}

define ptr @count_malloc(ptr %context, i64 %size) {{
  %allowed = call i1 @allow(i64 %size, i64 %size)
  br i1 %allowed, label %go, label %refuse
go:
  %malloc = inttoptr i64 {old_malloc} to ptr
  %p = call ptr %malloc(ptr %context, i64 %size)
  %taken = call i64 @size_of(ptr %p)
  call void @add(i64 %taken)
  ret ptr %p
refuse:
  ret ptr null
}}

; NumPy has checked that the product fits.
define ptr @count_calloc(ptr %context, i64 %elements, i64 %each) {{
  %size = mul i64 %elements, %each
  %allowed = call i1 @allow(i64 %size, i64 %size)
  br i1 %allowed, label %go, label %refuse
go:
  %calloc = inttoptr i64 {old_calloc} to ptr
  %p = call ptr %calloc(ptr %context, i64 %elements, i64 %each)
  %taken = call i64 @size_of(ptr %p)
  call void @add(i64 %taken)
  ret ptr %p
refuse:
  ret ptr null
}}

define ptr @count_realloc(ptr %context, ptr %p, i64 %size) {{
  %before = call i64 @size_of(ptr %p)
  %growth = sub i64 %size, %before
  %allowed = call i1 @allow(i64 %size, i64 %growth)
  br i1 %allowed, label %go, label %refuse
go:
  %realloc = inttoptr i64 {old_realloc} to ptr
  %moved = call ptr %realloc(ptr %context, ptr %p, i64 %size)
  %failed = icmp eq ptr %moved, null
  br i1 %failed, label %refuse, label %done
done:
  %after = call i64 @size_of(ptr %moved)
  %grown = sub i64 %after, %before
  call void @add(i64 %grown)
  ret ptr %moved
refuse:
  ret ptr null
}}

define void @count_free(ptr %context, ptr %p, i64 %size) {{
  %taken = call i64 @size_of(ptr %p)
  %less = sub i64 0, %taken
  call void @add(i64 %less)
  %free = inttoptr i64 {old_free} to ptr
  call void %free(ptr %context, ptr %p, i64 %size)
  ret void
}}

; Scratch memory of compiled kernels, which cannot be told that there is none: it is counted alone.
define ptr @count_scratch_malloc(i64 %size) {{
  %any = atomicrmw max ptr @largest, i64 %size seq_cst
  %p = call ptr @malloc(i64 %size)
  %taken = call i64 @size_of(ptr %p)
  call void @add(i64 %taken)
  ret ptr %p
}}

define void @count_scratch_free(ptr %p) {{
  %taken = call i64 @size_of(ptr %p)
  %less = sub i64 0, %taken
  call void @add(i64 %less)
  call void @free(ptr %p)
  ret void
}}

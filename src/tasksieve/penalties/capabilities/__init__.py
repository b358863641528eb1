"""What a penalty may know beside its core, by file: everything has a default.

`joint`: rows that belong together. `compiled`: forms that kernels know. `manifold`: where it is smooth. `sharper`: more
for screening. `shown`: parts and certificate files.
"""
